// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goTestOf writes the Go test that plays a finding again, with another operator if one is given, and
// returns the output and the error of the test.
func goTestOf(t *testing.T, finding string, program ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/findings\n\ngo 1.24\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(file string) result {
		return command(t, append([]string{"replay", finding, "--as-go-test", filepath.Join(dir, file), "--"}, program...)...)
	}
	if r := write("mistake.go"); r.code != 1 || !strings.Contains(r.stderr, "the name of a Go test ends with _test.go") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if r := write("mistake_test.go"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	if r := write("mistake_test.go"); r.code != 1 || !strings.Contains(r.stderr, "file exists") {
		t.Errorf("a test is overwritten: exit code %d\n%s", r.code, r.stderr)
	}
	takeTurn(t)
	run := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout=30m", ".")
	run.Dir, run.Env = dir, append(os.Environ(), "SANDBOX_BIN="+binary, "GOFLAGS=", "GOWORK=off")
	out, err := run.CombinedOutput()
	return string(out), err
}

// TestExploreInit checks that a workload that is written from a sample object and a kustomization can
// be played, and that an existing file is kept.
func TestExploreInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const example = "../examples/guestbook/config"
	file := filepath.Join(dir, "guestbook.yaml")
	args := []string{"explore", "--workload", file, "--init", example + "/samples/webapp_v1_guestbook.yaml", example + "/default"}
	if r := command(t, args...); r.code != 0 || !strings.Contains(r.stdout, "--dry-run") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	text, err := os.ReadFile(file)
	for _, want := range []string{"config/default]\n", "  apply: ", "resource: guestbooks.webapp.example.com, namespace: default, name: sample, merge: {spec: {frontends: 3}}"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("the workload lacks %q: %v\n%s", want, err, text)
		}
	}
	if r := command(t, args...); r.code != 1 || !strings.Contains(r.stderr, "file exists") {
		t.Errorf("a workload is overwritten: exit code %d\n%s", r.code, r.stderr)
	}

	sample := filepath.Join(dir, "bread.yaml")
	if err := os.WriteFile(sample, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bread, labels: {shop: order}}\ndata: {item: bread, state: new}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bread := filepath.Join(dir, "workload.yaml")
	if r := command(t, "explore", "--workload", bread, "--init", sample); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	r := play(t, "explore", "--dry-run", "--workload", bread, "--dir", dir, "--quiet", "1500ms", "--jobs", "2", "--", shop(t), "--dated")
	if r.code != 0 || !strings.Contains(r.stdout, "Without a fault, nothing is found.") || !strings.Contains(r.stdout, "CrashAfter at step 1, create secrets default/receipt-bread #1") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
