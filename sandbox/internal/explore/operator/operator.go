// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client/child"
	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

// Operator is the process under test. It is restarted after each exit, as by a Deployment.
type Operator struct {
	Command    []string
	Kubeconfig string
	// Pod makes the process find an environment as in a pod, and Environment are additional
	// variables. If Pod is nil, the process finds no cluster around it.
	Pod         *incluster.Pod
	Environment []string
	// Serve serves the API server in the network of the process, and Networks are the networks of
	// all processes.
	Serve    func(net.Listener)
	Networks *Networks
	// Bin is the directory of the programs in this binary, and Path the PATH of the process.
	Bin, Path string
	Output    *Output

	mu      sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	// killed is set before the process is killed, so that its end does not count as an exit.
	killed bool
	// exits describe how processes exited, such as "exit status 1"; words are the same with the
	// last lines of output.
	exits, words []string
	closed       bool
}

// Processes holds the current process of the operator, which a fault may replace with another.
type Processes struct{ *Operator }

// Another returns a second process of the same operator, not yet started.
func (o *Operator) Another() *Operator {
	return &Operator{
		Command: o.Command, Kubeconfig: o.Kubeconfig, Pod: o.Pod, Environment: o.Environment, Serve: o.Serve, Networks: o.Networks, Bin: o.Bin, Path: o.Path,
		Output: &Output{Fail: o.Output.Fail},
	}
}

// Start starts the process.
func (o *Operator) Start() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.launch()
}

// OwnProgram reports whether this binary contains a program with that name.
func OwnProgram(name string) bool {
	return name == component.ControllerManager || name == component.Scheduler
}

func (o *Operator) launch() error {
	program := o.Command[0]
	if OwnProgram(program) {
		program = filepath.Join(o.Bin, program)
	}
	command := exec.Command(program, o.Command[1:]...)
	for i, argument := range command.Args {
		command.Args[i] = strings.ReplaceAll(argument, "$KUBECONFIG", o.Kubeconfig)
	}
	command.Env = append(append(os.Environ(), o.Environment...), "KUBECONFIG="+o.Kubeconfig, "PATH="+o.Path)
	command.Stdout, command.Stderr = o.Output, o.Output
	// The process has a process group of its own, so that its child processes are killed, too.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = 5 * time.Second
	network, err := o.begin(command)
	if err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	ended := make(chan struct{})
	o.process, o.ended, o.killed = command, ended, false
	if network != nil {
		o.Networks.add(network)
		go o.Serve(network.API())
	}
	go func() {
		_ = command.Wait()
		if network != nil {
			o.Networks.remove(network)
		}
		o.over(command)
		close(ended)
	}()
	return nil
}

// begin starts a command, and returns the network of its process, or nil if the process shares
// the network of the machine.
func (o *Operator) begin(command *exec.Cmd) (*incluster.Network, error) {
	if o.Pod == nil {
		return nil, child.Start(command)
	}
	return o.Pod.Start(command, child.Start)
}

// restartAfter is the delay before a process that exited is restarted.
const restartAfter = time.Second

// over records an exit, and schedules a restart, unless the process was killed or the operator
// closed.
func (o *Operator) over(command *exec.Cmd) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.process != command || o.killed || o.closed {
		return
	}
	end := command.ProcessState.String()
	o.exits = append(o.exits, end)
	o.words = append(o.words, o.Output.lastOf(end))
	time.AfterFunc(restartAfter, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.process == command && !o.closed && !o.killed {
			if err := o.launch(); err != nil {
				o.exits, o.words = append(o.exits, err.Error()), append(o.words, err.Error())
			}
		}
	})
}

// Kill kills the process, and returns when it has ended.
func (o *Operator) Kill() {
	o.mu.Lock()
	process, ended := o.process, o.ended
	o.killed = true
	o.mu.Unlock()
	if process == nil {
		return
	}
	_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
	<-ended
}

// Signal sends a signal to the process.
func (o *Operator) Signal(signal syscall.Signal) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.process == nil {
		return nil
	}
	return syscall.Kill(-o.process.Process.Pid, signal)
}

// AwaitEnd waits until the process exits, or for the limit. The process is not restarted.
func (o *Operator) AwaitEnd(limit time.Duration) {
	o.mu.Lock()
	o.closed = true
	ended := o.ended
	o.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(limit):
	}
}

// Close kills the process. It is not restarted.
func (o *Operator) Close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.Kill()
}

// AllLastWords returns a line for each exit, with the last lines of output.
func (o *Operator) AllLastWords() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.words...)
}

// Ends returns a description of each exit, such as "exit status 1".
func (o *Operator) Ends() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.exits...)
}
