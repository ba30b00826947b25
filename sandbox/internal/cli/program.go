// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client/child"
)

// program is the program that the fault proxy starts, and that a rule of the proxy can crash and
// restart. It is killed when this process exits.
type program struct {
	arguments []string
	// environment lists the environment variables that the program gets in addition to the
	// variables of this process.
	environment []string

	mu      sync.Mutex
	process *exec.Cmd
	// ended is closed when the current process of the program has exited.
	ended chan struct{}
	// expected is set while the process is being killed, so that its exit is not reported.
	expected bool
	// crashing is set from a simulated crash until the restart.
	crashing bool
	closed   bool
	// over receives the program's exit code if the program exits without being killed by this
	// process.
	over chan int
}

func newProgram(arguments, environment []string) *program {
	return &program{arguments: arguments, environment: environment, over: make(chan int, 1)}
}

// start starts the program in a new process.
func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	command := exec.Command(p.arguments[0], p.arguments[1:]...)
	command.Env = append(os.Environ(), p.environment...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Start a process group, so that child processes of the program are killed, too.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := child.Start(command); err != nil {
		return fmt.Errorf("start the program: %w", err)
	}
	ended := make(chan struct{})
	p.process, p.ended, p.expected, p.crashing = command, ended, false, false
	go func() {
		_ = command.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.expected {
			code := command.ProcessState.ExitCode()
			if code < 0 { // The process was terminated by a signal.
				code = 1
			}
			p.over <- code
		}
		close(ended)
	}()
	return nil
}

// kill kills the program's process, and returns when it has terminated.
func (p *program) kill() {
	p.mu.Lock()
	process, ended := p.doom()
	p.mu.Unlock()
	end(process, ended)
}

// doom returns the current process, which is about to be killed, and the channel that is closed when
// it has exited. The caller must hold the lock p.mu.
func (p *program) doom() (process *exec.Cmd, ended <-chan struct{}) {
	p.expected = true
	return p.process, p.ended
}

// end kills a process, unless it is nil, and returns when the process has terminated.
func end(process *exec.Cmd, ended <-chan struct{}) {
	if process == nil {
		return
	}
	_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
	<-ended
}

// crash kills the program, and restarts it after the given time. Requests that the killed process
// had sent may cause further calls of crash. Until the restart, these calls count as the same
// crash, so that the program is restarted only once.
func (p *program) crash(down time.Duration) {
	// Choose the process while the lock is held: a call that counts as an earlier crash must not kill
	// the process of the restart, which no call would start again.
	p.mu.Lock()
	again := p.crashing
	p.crashing = true
	process, ended := p.doom()
	p.mu.Unlock()
	end(process, ended)
	if again {
		return
	}
	time.AfterFunc(down, func() {
		if err := p.start(); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			p.over <- 1
		}
	})
}

// close kills the program, and prevents further starts of it.
func (p *program) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.kill()
}
