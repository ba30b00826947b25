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

// program is a program that can be crashed, and is started again then. It ends with this
// process.
type program struct {
	arguments []string
	// environment is added to that of this process.
	environment []string

	mu      sync.Mutex
	process *exec.Cmd
	// ended is closed when the process has ended.
	ended chan struct{}
	// expected: the process is being killed, so that its end is not its own.
	expected bool
	// crashing: it is down, and is about to be started again.
	crashing bool
	closed   bool
	// over gets the exit code of the program, if it ended by itself.
	over chan int
}

func newProgram(arguments, environment []string) *program {
	return &program{arguments: arguments, environment: environment, over: make(chan int, 1)}
}

// start starts it.
func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	command := exec.Command(p.arguments[0], p.arguments[1:]...)
	command.Env = append(os.Environ(), p.environment...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Its child processes are killed with it.
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
			if code < 0 { // A signal has ended it.
				code = 1
			}
			p.over <- code
		}
		close(ended)
	}()
	return nil
}

// kill kills it, and returns when it has ended.
func (p *program) kill() {
	p.mu.Lock()
	process, ended := p.process, p.ended
	p.expected = true
	p.mu.Unlock()
	if process == nil {
		return
	}
	_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
	<-ended
}

// crash kills it, and starts it again after a while. Requests of the killed process that were on
// their way may ask for further crashes: until the next process has started, they count as the same
// crash, so that there are never two processes.
func (p *program) crash(down time.Duration) {
	p.mu.Lock()
	again := p.crashing
	p.crashing = true
	p.mu.Unlock()
	p.kill()
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

// close kills it for good.
func (p *program) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.kill()
}
