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
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

// Operator is the operator under test. Its process is restarted after each exit, as a kubelet
// restarts containers of a Deployment.
type Operator struct {
	Command    []string
	Kubeconfig string
	// Pod provides the environment of a container in a pod. If it is nil, the process runs as if it
	// were outside a cluster. Environment lists additional environment variables, as NAME=VALUE.
	Pod         *incluster.Pod
	Environment []string
	// Serve accepts the operator's API requests on a listener in the network namespace of the
	// operator's process. Networks collects the network namespaces of all processes of the
	// operator.
	Serve    func(net.Listener)
	Networks *Networks
	// Applications, unless nil, answers the process's connections to pods and Services.
	Applications func(*incluster.Network)
	// Bin is the directory of links to the programs embedded in the sandbox binary. Path is the
	// PATH of the process.
	Bin, Path string
	Output    *Output
	// Log records the starts and ends of the operator's processes under the name LogName, unless it is
	// nil.
	Log     *observe.ProcessLog
	LogName string

	mu      sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	// killed is set when a caller kills the process on purpose, so that this end of the process
	// does not count as an exit of the operator.
	killed bool
	// exits lists the exit statuses of processes, such as "exit status 1". words lists the same
	// statuses, each with the last lines of output before the exit.
	exits, words []string
	closed       bool
}

// Processes refers to the current process of the operator. A fault may replace it with another
// process.
type Processes struct{ *Operator }

// Another returns a second process of the same operator, but does not start it.
func (o *Operator) Another() *Operator {
	return &Operator{
		Command: o.Command, Kubeconfig: o.Kubeconfig, Pod: o.Pod, Environment: o.Environment, Serve: o.Serve, Networks: o.Networks, Applications: o.Applications, Bin: o.Bin, Path: o.Path,
		Output: &Output{Fail: o.Output.Fail}, Log: o.Log, LogName: o.LogName,
	}
}

// Start starts the operator's process, which is restarted after each exit until Close is called.
func (o *Operator) Start() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.launch()
}

// OwnProgram reports whether the named program is embedded in the sandbox binary.
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
	// Run the process in its own process group, so that its child processes are killed with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = 5 * time.Second
	network, err := o.begin(command)
	if err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	o.Log.Add(o.LogName, observe.Started)
	ended := make(chan struct{})
	o.process, o.ended, o.killed = command, ended, false
	if network != nil {
		o.Networks.add(network)
		go o.Serve(network.API())
		if o.Applications != nil {
			go o.Applications(network)
		}
	}
	go func() {
		_ = command.Wait()
		o.Log.Add(o.LogName, endOf(command.ProcessState))
		if network != nil {
			o.Networks.remove(network)
		}
		o.over(command)
		close(ended)
	}()
	return nil
}

// begin starts a command and returns its network namespace, or nil if the command shares the
// machine's network.
func (o *Operator) begin(command *exec.Cmd) (*incluster.Network, error) {
	if o.Pod == nil {
		return nil, child.Start(command)
	}
	return o.Pod.Start(command, child.Start)
}

// endOf returns observe.Killed for a process that SIGKILL has ended, and observe.Exited for any
// other process.
func endOf(state *os.ProcessState) observe.ProcessChange {
	if state == nil {
		return observe.Exited
	}
	if status, is := state.Sys().(syscall.WaitStatus); is && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return observe.Killed
	}
	return observe.Exited
}

// restartAfter is the delay before the process is restarted after an exit.
const restartAfter = time.Second

// over records an exit of the process and schedules a restart, unless the process was killed on
// purpose or the operator is closed.
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

// Kill kills the process and its children, and returns when the process has exited. The process is
// not restarted.
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

// Signal sends SIGSTOP or SIGCONT to the process and its children.
func (o *Operator) Signal(signal syscall.Signal) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.process == nil {
		return nil
	}
	err := syscall.Kill(-o.process.Process.Pid, signal)
	switch {
	case err != nil:
	case signal == syscall.SIGSTOP:
		o.Log.Add(o.LogName, observe.Suspended)
	case signal == syscall.SIGCONT:
		o.Log.Add(o.LogName, observe.Resumed)
	}
	return err
}

// AwaitEnd waits until the process exits, but no longer than the limit. The process is not
// restarted.
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

// Close kills the process and prevents further restarts.
func (o *Operator) Close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.Kill()
}

// AllLastWords returns a line for each exit of the process, with the exit status and the last lines
// of output before the exit.
func (o *Operator) AllLastWords() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.words...)
}

// Ends returns the status of each exit of the process, such as "exit status 1".
func (o *Operator) Ends() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.exits...)
}
