// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// operator is the source code of a third-party program that prints the API server's version.
const operator = `package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	ca, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	answer, err := client.Get("https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")) + "/version")
	if err != nil {
		panic(err)
	}
	io.Copy(os.Stdout, answer.Body)
	select {}
}
`

// wrapper is a script that runs the sandbox with its own data directory. The sandbox stops with
// this test's process. For kubectl logs, the script waits until the program has written something,
// as a user would try again.
const wrapper = `#!/bin/sh
export SANDBOX_DATA_DIR=%s
case "$1 $2" in
up*) shift; exec %[2]s up --kubeconfig= --owner %[3]d "$@" ;;
"kubectl logs") until [ -n "$(%[2]s "$@")" ]; do sleep 0.1; done ;;
esac
exec %[2]s "$@"
`

// patiencePage is the timeout for the documentation's commands, long enough for a busy machine.
const patiencePage = 15 * time.Minute

var realNodesBlock = regexp.MustCompile("(?s)\n```sh\n(.*?)```")

// TestRealNodesPage checks that the commands in sandbox/docs/real-nodes.md start a third-party
// program and leave nothing behind. The directory contains a stand-in for the reader's program, and
// make only checks that its targets exist.
func TestRealNodesPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(framework.Root(), "sandbox", "docs", "real-nodes.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := realNodesBlock.FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no commands")
	}
	sandbox, err := framework.Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	before := machine(t, "")
	dir, data := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/stranger\n\ngo 1.26\n")
	write("cmd/operator/main.go", operator)
	write("bin/sandbox", fmt.Sprintf(wrapper, data, sandbox, os.Getpid()))
	script := strings.ReplaceAll(string(block[1]), "/tmp/operator", filepath.Join(dir, "operator"))
	script = fmt.Sprintf("set -ex\nmake() { command make -C %s --dry-run \"$@\" >/dev/null; }\n%s", filepath.Join(framework.Root(), "sandbox"), script)

	ctx, cancel := context.WithTimeout(t.Context(), patiencePage)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = dir
	t.Cleanup(func() { // Stop the sandbox even if a command has failed.
		down := exec.Command(sandbox, "down", "--data-dir", data)
		_ = down.Run()
	})
	begun := time.Now()
	out, err := shell.CombinedOutput()
	took := time.Since(begun).Round(time.Second)
	if strings.Contains(string(out), "real nodes need") {
		t.Skipf("SKIPPED: %s", out)
	}
	if err != nil || !strings.Contains(string(out), `"gitVersion":`) {
		t.Fatalf("the program did not say which version the API server has (%v):\n%s", err, out)
	}
	t.Logf("it took %s", took)
	nothingLeft(t, before, data)
}
