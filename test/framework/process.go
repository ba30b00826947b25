// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// process is a program that runs in the background of a test. It is killed when the test ends, at
// the latest.
type process struct {
	*sandbox.Process
	name string
}

// RunTool starts a program that a test needs in addition to the manager. [Binary] finds its path.
// The program is stopped when the test ends, and must exit with code 0.
func RunTool(t testing.TB, variable, name string, args ...string) {
	t.Helper()
	path, err := Binary(variable, name)
	if err != nil {
		t.Fatal(err)
	}
	run(t, name, path, args...)
}

// RunAsPod is [RunTool] through "sandbox run", for a program that expects to run in a pod. `args`
// are flags of "sandbox run" and, after "--", arguments of the program.
func (c *Cluster) RunAsPod(t testing.TB, variable, name string, args ...string) {
	t.Helper()
	path, err := Binary(variable, name)
	if err != nil {
		t.Fatal(err)
	}
	flags, rest := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		flags, rest = args[:i], args[i+1:]
	}
	command := c.sandbox.Command(context.WithoutCancel(t.Context()), slices.Concat([]string{"run"}, flags, []string{"--", path}, rest)...)
	runCommand(t, name, command)
}

// run starts the program at `path`. If the program is still running when the test ends, it is
// stopped. If the test has failed, the program's log is shown.
func run(t testing.TB, name, path string, args ...string) *process {
	t.Helper()
	return runCommand(t, name, exec.Command(path, args...))
}

func runCommand(t testing.TB, name string, command *exec.Cmd) *process {
	t.Helper()
	started, err := sandbox.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{started, name}
	p.cleanup(t, func() { p.Stop(t) })
	return p
}

// cleanup calls `stop` when the test ends, if the process is still running. It fails the test if
// the process's log reports a defect.
func (p *process) cleanup(t testing.TB, stop func()) {
	t.Cleanup(func() {
		if p.Running() {
			stop()
		}
		assertNoDefect(t, p.name, p.Log())
		if t.Failed() {
			t.Log(explainLog(t, p.name, p.Log()))
		}
	})
}

// Kill sends SIGKILL to the process, to simulate a crash.
func (p *process) Kill(t testing.TB) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// Signal sends a signal, for instance SIGSTOP to simulate a suspended machine.
func (p *process) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Stop sends SIGTERM, like a kubelet, and waits until the process has exited. It fails the test if
// the exit code is not 0.
func (p *process) Stop(t testing.TB) {
	t.Helper()
	if err := p.Process.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("stop the %s: %v", p.name, err)
	}
}

// Wait waits until the process has exited and returns its exit code.
func (p *process) Wait(t testing.TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	code, err := p.Process.Wait(ctx)
	if err != nil {
		_ = p.Process.Kill()
		t.Fatalf("the %s did not end within %s:\n%s", p.name, Patience, p.Log())
	}
	return code
}

// Log returns the process's output so far.
func (p *process) Log() string { return p.Output() }

// defects maps the beginning of a report in a process's log to the reported defect. The reports
// come from the race detector, and from a manager with --verify-decoding.
var defects = map[string]string{
	"WARNING: DATA RACE": "has a data race",
	"The cache and client-go decode an object differently": "decodes an object wrongly",
}

// assertNoDefect fails the test if a process's log reports a defect.
func assertNoDefect(t testing.TB, name, log string) {
	t.Helper()
	for report, defect := range defects {
		if _, rest, found := strings.Cut(log, report); found {
			lines := strings.SplitAfterN(rest, "\n", 60)
			t.Errorf("the %s %s:\n%s%s", name, defect, report, strings.Join(lines[:min(len(lines), 59)], ""))
		}
	}
}
