// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client/child"
)

// stopTimeout is the maximum time for a process to exit after SIGTERM.
const stopTimeout = 30 * time.Second

// Process is a program that runs in the background. It is killed when the process that started it
// exits.
type Process struct {
	command   *exec.Cmd
	output    buffer
	done      chan struct{}
	suspended atomic.Bool
}

// Start starts a command. Its output is available from [Process.Output], unless the command's
// Stdout or Stderr is already set.
func Start(command *exec.Cmd) (*Process, error) {
	p := &Process{command: command, done: make(chan struct{})}
	if command.Stdout == nil {
		command.Stdout = &p.output
	}
	if command.Stderr == nil {
		command.Stderr = &p.output
	}
	if err := child.Start(command); err != nil {
		return nil, err
	}
	go func() {
		_ = command.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid returns the process ID.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Output returns the output of the process so far.
func (p *Process) Output() string { return p.output.String() }

// Done returns a channel that is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the process is still running.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Context returns a context that is also canceled when the process exits. Its cause (see
// [context.Cause]) is then an error with the exit code and the output of the process.
func (p *Process) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.done:
			cancel(p.ended())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (p *Process) ended() error {
	return fmt.Errorf("%s has ended with %s:\n%s", filepath.Base(p.command.Path), p.command.ProcessState, p.Output())
}

// Signal sends a signal to the process.
func (p *Process) Signal(signal syscall.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil {
		return err
	}
	p.suspended.Store(signal == syscall.SIGSTOP || p.suspended.Load() && signal != syscall.SIGCONT)
	return nil
}

// Suspended reports whether the process has been stopped with SIGSTOP and not yet resumed with
// SIGCONT.
func (p *Process) Suspended() bool { return p.suspended.Load() }

// Kill kills the process with SIGKILL, which simulates a crash, and waits until it has terminated.
func (p *Process) Kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Wait waits until the process has terminated and returns its exit code, or -1 if it was terminated
// by a signal.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.command.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// Stop sends SIGTERM and waits until the process has exited. It returns an error if the exit code
// is not 0. If the process has not exited after 30 seconds or when the context is done, Stop kills
// it and returns an error.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	code, err := p.Wait(ctx)
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("%s did not end after SIGTERM: %w", filepath.Base(p.command.Path), err), p.Kill())
	case code != 0:
		return p.ended()
	default:
		return nil
	}
}

// buffer collects the output of a process and can be read while the process is still writing.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(text)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
