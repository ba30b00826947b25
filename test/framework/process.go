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

// process is a program that runs in the background of a test and never outlives it.
type process struct {
	*sandbox.Process
	name string
}

// RunTool starts a program that a test needs in addition to the manager, found by
// [Binary]. It is stopped when the test ends, and must exit with code 0.
func RunTool(t testing.TB, variable, name string, args ...string) {
	t.Helper()
	path, err := Binary(variable, name)
	if err != nil {
		t.Fatal(err)
	}
	run(t, name, path, args...)
}

// RunAsPod is [RunTool] through "sandbox run", for a program that expects to be in a pod. The
// arguments are flags of "sandbox run" and, after "--", arguments of the program.
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

// run starts the program at a path. When the test ends, the program is stopped if it
// is still running, and its log is shown if the test has failed.
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

// cleanup stops the process when the test ends, if it is still running, and fails the test
// if the log of the process reports a defect.
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

// Kill kills the process, like a crash.
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

// Stop asks the process to stop, as a kubelet would, waits until it has stopped, and
// fails the test if its exit code is not 0.
func (p *process) Stop(t testing.TB) {
	t.Helper()
	if err := p.Process.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("stop the %s: %v", p.name, err)
	}
}

// Wait waits until the process has ended and returns its exit code.
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

// Log returns the output of the process.
func (p *process) Log() string { return p.Output() }

// defects are the beginnings of reports in the log of a process: of the race detector, and of
// a manager with --verify-decoding.
var defects = map[string]string{
	"WARNING: DATA RACE": "has a data race",
	"The cache and client-go decode an object differently": "decodes an object wrongly",
}

// assertNoDefect fails the test if the log of a process reports a defect.
func assertNoDefect(t testing.TB, name, log string) {
	t.Helper()
	for report, defect := range defects {
		if _, rest, found := strings.Cut(log, report); found {
			lines := strings.SplitAfterN(rest, "\n", 60)
			t.Errorf("the %s %s:\n%s%s", name, defect, report, strings.Join(lines[:min(len(lines), 59)], ""))
		}
	}
}
