// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readme runs the commands of the README and of docs/tasks, page by page in a shell, and
// compares their output with the output on the page.
package readme

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client/console"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// next matches the time of the next restart and the time until then, which differ between runs.
var next = regexp.MustCompile(`\b(?:today|tomorrow|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?: \d+ \w+)?) \d\d:\d\d(?: UTC)? \(in \w+\)`)

// constant replaces the parts of a line that differ between runs.
func constant(line string) string {
	return console.Constant(next.ReplaceAllString(line, "NEXT"))
}

// writes matches the plugin's commands that write to the cluster.
var writes = regexp.MustCompile(`^kubectl tide (?:freeze|thaw|restarts (?:now|suspend|resume)|maintenance (?:done|suspend|resume)) `)

// repeatable reports whether a command only reads. A reading command is repeated until its output
// matches the page, because a human reader is slower than this test.
func repeatable(command string) bool {
	reads := strings.HasPrefix(command, "kubectl tide ") && !writes.MatchString(command)
	return reads || strings.HasPrefix(command, "kubectl get ") || strings.HasPrefix(command, "kubectl auth can-i ")
}

// answers matches the commands that use exit code 2 to report that something would change, wait or
// be missed.
var answers = regexp.MustCompile(`kubectl tide (?:pools (?:plan|loss|blockers)|restarts (?:gates|forecast)|maintenance forecast) `)

// built lists the commands that are skipped because the programs that they build already exist.
var built = []string{"make build"}

// TestREADME runs the README's example of a pool and a restart on a cluster that has worker nodes,
// a Deployment, and Tidekeeper.
func TestREADME(t *testing.T) {
	dir := checkout(t)
	_, manifest, _ := strings.Cut(read(t, "README.md"), "\n```yaml\n")
	manifest, _, found := strings.Cut(manifest, "```\n")
	if !found {
		t.Fatal("the README has no manifest")
	}
	if err := os.WriteFile(filepath.Join(dir, "pool-and-restart.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	sh := console.Start(t, dir)
	sh.Must(t,
		`export PATH="$PWD/bin:$PATH" KUBECONFIG="$PWD/kubeconfig"`,
		"sandbox up --nodes 3 --detach --kubeconfig kubeconfig",
		"kubectl apply -k config/crd",
		kindsAreServed,
		"tidekeeper 2> tidekeeper.log &",
		"kubectl label node node-1 node-2 node-role.kubernetes.io/worker=",
		"kubectl apply -f hack/demo/web.yaml",
	)
	follow(t, "README.md", 3, sh)
}

// kindsAreServed is a command that waits until the API server serves the kinds of the CRDs.
const kindsAreServed = "kubectl wait --for=condition=Established crd --all " + framework.LongTimeout

func TestTryIt(t *testing.T) {
	sh := console.Start(t, checkout(t))
	followWith(t, "docs/tasks/try-it.md", 12, sh, func(command string) {
		// A human reader is slower than this test.
		if strings.HasPrefix(command, "tidekeeper ") {
			sh.Must(t, kindsAreServed)
		}
	})
}

// read returns the content of a page. The path `name` is relative to the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(framework.Root(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// follow runs the commands on a page in a shell and compares their output with the page. The page
// must have at least `least` commands.
func follow(t *testing.T, name string, least int, sh *console.Shell) {
	t.Helper()
	followWith(t, name, least, sh, func(string) {})
}

// followWith is [follow], but calls `before` with each command before it runs.
func followWith(t *testing.T, name string, least int, sh *console.Shell, before func(command string)) {
	t.Helper()
	all := console.Steps(read(t, name))
	if len(all) < least {
		t.Fatalf("%s has %d commands", name, len(all))
	}
	for _, s := range all {
		if slices.Contains(built, s.Command) {
			continue
		}
		before(s.Command)
		do := func() error {
			got, code := sh.Run(t, s.Command)
			if (code == 0 || code == 2 && answers.MatchString(s.Command)) && console.Shows(got, s.Want, constant) {
				return nil
			}
			return fmt.Errorf("exit code %d\n%s\nthe page shows:\n%s", code, strings.Join(got, "\n"), strings.Join(s.Want, "\n"))
		}
		what := fmt.Sprintf("%s:%d: $ %s", name, s.Line, s.Command)
		if repeatable(s.Command) {
			framework.EventuallyWithin(t, 5*time.Minute, what, do)
		} else if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// checkout returns a directory that looks like a checkout of the repository after make build.
func checkout(t *testing.T) string {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	for _, name := range []string{"charts", "config", "hack"} {
		if err := os.Symlink(filepath.Join(framework.Root(), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	binary := func(variable, name string) string {
		if path := os.Getenv(variable); path != "" {
			return path
		}
		return filepath.Join(framework.Root(), "bin", name)
	}
	bin := filepath.Join(dir, "bin")
	write := func(name, script string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sandbox := binary("SANDBOX_BIN", "sandbox")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// The sandbox binary acts as kubectl when it is started under that name.
	if err := os.Symlink(sandbox, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary("TIDE_BIN", "kubectl-tide"), filepath.Join(bin, "kubectl-tide")); err != nil {
		t.Fatal(err)
	}
	write("helm", fmt.Sprintf(`HOME=%s exec %s "$@"`, home, binary("HELM_BIN", "helm")))
	// The sandbox uses free ports on loopback only, and ends with this test process.
	write("sandbox", fmt.Sprintf(`export HOME=%s
unset SANDBOX_DATA_DIR XDG_STATE_HOME
case $1 in up) shift; exec %s up --owner %d "$@";; esac
exec %s "$@"`, home, sandbox, os.Getpid(), sandbox))
	write("tidekeeper", fmt.Sprintf(`exec %s --metrics-bind-address 127.0.0.1:0 --health-probe-bind-address 127.0.0.1:0 "$@"`, binary("TIDEKEEPER_BIN", "tidekeeper")))
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(bin, "sandbox"), "down")
		down.Dir = dir
		_ = down.Run()
	})
	return dir
}
