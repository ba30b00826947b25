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

// Operator is the process under test. It is started again when it ends, as a Deployment
// would.
type Operator struct {
	Command    []string
	Kubeconfig string
	// Pod is what a program finds that looks for a cluster around it, and environment what
	// variables it has beside those of this process. Nil: it finds none.
	Pod         *incluster.Pod
	Environment []string
	// Serve serves what the program asks the API server in a network of its own, and networks
	// are those of all processes.
	Serve    func(net.Listener)
	Networks *Networks
	// Bin is where the programs of this binary are, path the PATH of the process.
	Bin, Path string
	Output    *Output

	mu      sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	// killed: we are about to kill it, so its end is no exit.
	killed bool
	// exits are how processes have ended, and words the same with what each has written last.
	exits, words []string
	closed       bool
}

// Processes has the process of the operator that runs now: another may take over.
type Processes struct{ *Operator }

// Another returns another process of the same operator, which is not started.
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

// OwnProgram reports whether a program is in this binary.
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
	// Its children end with it.
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

// begin starts a command, and returns the network of its process, unless that is the machine's.
func (o *Operator) begin(command *exec.Cmd) (*incluster.Network, error) {
	if o.Pod == nil {
		return nil, child.Start(command)
	}
	return o.Pod.Start(command, child.Start)
}

// restartAfter is how long an operator that has ended is left alone.
const restartAfter = time.Second

// over notes that a process has ended, and starts another if it was not to end.
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

// Kill kills it, and returns when it has ended.
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

// AwaitEnd waits until the process has ended by itself, no longer than the limit. It is not
// started again.
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

// Close ends it for good.
func (o *Operator) Close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.Kill()
}

// AllLastWords returns each end of a process by itself, with its last lines of output.
func (o *Operator) AllLastWords() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.words...)
}

// Ends returns how often, and how, it has ended by itself.
func (o *Operator) Ends() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.exits...)
}
