// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a binary that runs in the background of a test.
type process struct {
	name    string
	command *exec.Cmd
	log     log
	done    chan struct{}
}

// RunTool starts a binary that a test needs beside the manager, by the rules of
// [Binary]. It is stopped when the test ends, and must end in order.
func RunTool(t testing.TB, variable, name string, args ...string) {
	t.Helper()
	path, err := Binary(variable, name)
	if err != nil {
		t.Fatal(err)
	}
	run(t, name, path, args...)
}

// starter starts processes that do not outlive this one, even if it is killed. It
// does so from one thread: Linux kills a child with Pdeathsig when the thread ends
// that has started it.
var starter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// run starts the binary at a path. What still runs when the test ends is
// stopped, and its log shown if the test has failed.
func run(t testing.TB, name, path string, args ...string) *process {
	t.Helper()
	p := &process{name: name, command: exec.Command(path, args...), done: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starter() <- func() { started <- p.command.Start() }
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		if p.Running() {
			p.Stop(t)
		}
		if t.Failed() {
			t.Logf("the log of the %s:\n%s", p.name, p.Log())
		}
	})
	return p
}

// Pid is the process ID.
func (p *process) Pid() int { return p.command.Process.Pid }

// Running tells whether the process runs.
func (p *process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends the process as a crash would.
func (p *process) Kill(t testing.TB) {
	t.Helper()
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-p.done
}

// Signal sends a signal, for instance SIGSTOP: the machine is suspended.
func (p *process) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Stop asks the process to stop, as a kubelet would, waits until it has, and
// fails the test if it does not do so in order.
func (p *process) Stop(t testing.TB) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if code := p.Wait(t); code != 0 {
		t.Errorf("the %s ended with exit code %d, want 0:\n%s", p.name, code, p.Log())
	}
}

// Wait waits until the process has ended and returns its exit code.
func (p *process) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(Patience):
		_ = p.command.Process.Kill()
		t.Fatalf("the %s did not end within %s:\n%s", p.name, Patience, p.Log())
	}
	return p.command.ProcessState.ExitCode()
}

// Log returns what the process has printed.
func (p *process) Log() string { return p.log.String() }

// log collects the output of a process that still runs.
type log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}
