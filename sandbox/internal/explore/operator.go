// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

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

// operator is the process under test. It is started again when it ends, as a Deployment
// would.
type operator struct {
	command    []string
	kubeconfig string
	// pod is what a program finds that looks for a cluster around it, and environment what
	// variables it has beside those of this process. Nil: it finds none.
	pod         *incluster.Pod
	environment []string
	// serve serves what the program asks the API server in a network of its own, and networks
	// are those of all processes.
	serve    func(net.Listener)
	networks *networks
	// bin is where the programs of this binary are, path the PATH of the process.
	bin, path string
	output    *output

	mu      sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	// killed: we are about to kill it, so its end is no exit.
	killed bool
	// exits are how processes have ended, and words the same with what each has written last.
	exits, words []string
	closed       bool
}

// processes has the process of the operator that runs now: another may take over.
type processes struct{ *operator }

// another returns another process of the same operator, which is not started.
func (o *operator) another() *operator {
	return &operator{
		command: o.command, kubeconfig: o.kubeconfig, pod: o.pod, environment: o.environment, serve: o.serve, networks: o.networks, bin: o.bin, path: o.path,
		output: &output{fail: o.output.fail},
	}
}

// start starts the process.
func (o *operator) start() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.launch()
}

// OwnProgram reports whether a program is one in this binary.
func OwnProgram(name string) bool {
	return name == component.ControllerManager || name == component.Scheduler
}

func (o *operator) launch() error {
	program := o.command[0]
	if OwnProgram(program) {
		program = filepath.Join(o.bin, program)
	}
	command := exec.Command(program, o.command[1:]...)
	for i, argument := range command.Args {
		command.Args[i] = strings.ReplaceAll(argument, "$KUBECONFIG", o.kubeconfig)
	}
	command.Env = append(append(os.Environ(), o.environment...), "KUBECONFIG="+o.kubeconfig, "PATH="+o.path)
	command.Stdout, command.Stderr = o.output, o.output
	// What it starts ends with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = 5 * time.Second
	network, err := o.begin(command)
	if err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	ended := make(chan struct{})
	o.process, o.ended, o.killed = command, ended, false
	if network != nil {
		o.networks.add(network)
		go o.serve(network.API())
	}
	go func() {
		_ = command.Wait()
		if network != nil {
			o.networks.remove(network)
		}
		o.over(command)
		close(ended)
	}()
	return nil
}

// begin starts a command, and returns the network of its process, unless that is the machine's.
func (o *operator) begin(command *exec.Cmd) (*incluster.Network, error) {
	if o.pod == nil {
		return nil, child.Start(command)
	}
	return o.pod.Start(command, child.Start)
}

// restartAfter is how long an operator that has ended is left alone.
const restartAfter = time.Second

// over notes that a process has ended, and starts another if it was not to end.
func (o *operator) over(command *exec.Cmd) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.process != command || o.killed || o.closed {
		return
	}
	end := command.ProcessState.String()
	o.exits = append(o.exits, end)
	o.words = append(o.words, o.output.lastOf(end))
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

// kill kills it, and returns when it has ended.
func (o *operator) kill() {
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

// signal sends a signal to the process.
func (o *operator) signal(signal syscall.Signal) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.process == nil {
		return nil
	}
	return syscall.Kill(-o.process.Process.Pid, signal)
}

// awaitEnd waits until the process has ended by itself, no longer than the limit. It is not
// started again.
func (o *operator) awaitEnd(limit time.Duration) {
	o.mu.Lock()
	o.closed = true
	ended := o.ended
	o.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(limit):
	}
}

// close ends it for good.
func (o *operator) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.kill()
}

// allLastWords returns how it has ended by itself, and what it has written last, each time.
func (o *operator) allLastWords() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.words...)
}

// ends returns how often, and how, it has ended by itself.
func (o *operator) ends() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.exits...)
}
