// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain skips the examples and TestInASandbox unless $SANDBOX_BIN is set, because they need a
// sandbox.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(BinaryVariable) == "" {
		if err := flag.Set("test.skip", "^(Example|TestInASandbox)"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestWait(t *testing.T) {
	t.Parallel()
	left := 3
	if err := Wait(t.Context(), time.Minute, "it counts down", func() error {
		if left--; left > 0 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	failure := errors.New("no such thing")
	err := Wait(t.Context(), time.Millisecond, "it is there", func() error { return failure })
	if !errors.Is(err, failure) || !strings.HasPrefix(err.Error(), "not within 1ms: it is there: ") {
		t.Errorf("after the timeout: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("interrupted")
	cancel(cause)
	if err := Wait(ctx, time.Minute, "it is there", func() error { return failure }); !errors.Is(err, cause) || !errors.Is(err, failure) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestProcess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script, problem string
	}{
		"ends in order":          {"trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done", ""},
		"ends with an exit code": {"trap 'echo sorry >&2; exit 3' TERM; echo ready; while :; do sleep 0.01; done", "sh has ended with exit status 3:\nready\nsorry\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, test.script)
			if err := Wait(t.Context(), 2*time.Minute, "it has printed", func() error {
				if p.Output() != "ready\n" {
					return errors.New(p.Output())
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if !p.Running() {
				t.Error("it does not run")
			}
			problem := ""
			if err := p.Stop(t.Context()); err != nil {
				problem = err.Error()
			}
			if problem != test.problem {
				t.Errorf("stopped: %q, want %q", problem, test.problem)
			}
			if p.Running() {
				t.Error("it still runs")
			}
		})
	}
}

// TestStopKills checks that Stop kills a process that ignores SIGTERM once the context is done.
func TestStopKills(t *testing.T) {
	t.Parallel()
	p := start(t, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	if err := Wait(t.Context(), 2*time.Minute, "it has printed", func() error {
		if p.Output() == "" {
			return errors.New("nothing")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || p.Running() {
		t.Errorf("%v, running: %t", err, p.Running())
	}
}

func TestSuspended(t *testing.T) {
	t.Parallel()
	// The "exec" replaces the shell with the sleep command. If the shell were killed instead, the
	// sleep would keep running and hold its output open.
	p := start(t, "exec sleep 600")
	for _, step := range []struct {
		signal    syscall.Signal
		suspended bool
	}{{syscall.SIGSTOP, true}, {syscall.SIGTERM, true}, {syscall.SIGCONT, false}} {
		if err := p.Signal(step.signal); err != nil || p.Suspended() != step.suspended {
			t.Errorf("after %s: %v, suspended: %t", step.signal, err, p.Suspended())
		}
	}
	if code, err := p.Wait(t.Context()); code != -1 || err != nil {
		t.Errorf("ended by SIGTERM: exit code %d, %v", code, err)
	}
}

// TestContext checks that a process's context is canceled when the process exits, and that the
// cause names the exit code.
func TestContext(t *testing.T) {
	t.Parallel()
	p := start(t, "echo no such file; exit 4")
	ctx, cancel := p.Context(t.Context())
	defer cancel()
	<-ctx.Done()
	if got, want := context.Cause(ctx).Error(), "sh has ended with exit status 4:\nno such file\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFreeAddress checks that no address is returned twice before it is released, and that a server
// can listen on an address twice in a row.
func TestFreeAddress(t *testing.T) {
	// The count is high enough to detect a port that is released too early, and low enough for the
	// smallest ephemeral port range and open file limit.
	const count = 500
	seen := map[string]bool{}
	for range count {
		address, release, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := release(); err != nil {
				t.Error(err)
			}
		})
		if seen[address] {
			t.Fatalf("%s is given twice", address)
		}
		seen[address] = true
	}
	for address := range seen {
		for range 2 {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			other, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if seen[other.Addr().String()] {
				t.Errorf("%s is given to a server that asks for any", other.Addr())
			}
			if err := errors.Join(listener.Close(), other.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestProxyThatEnds checks that the output of a proxy that exits during startup is reported, and
// that its files are removed.
func TestProxyThatEnds(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	_, err := StartProxy(t.Context(), ProxyOptions{Command: []string{"sh", "-c", "echo no API server; exit 1"}})
	if err == nil || !strings.Contains(err.Error(), "exit status 1:\nno API server\n") {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
