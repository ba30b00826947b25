// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	// pod has the files of a ServiceAccount, and server is the URL of the API server, for a
	// program that looks for a cluster around it. Empty: it finds none.
	pod, server string
	// bin is where the programs of this binary are, path the PATH of the process.
	bin, path string
	output    *output

	mu      sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	// killed: we are about to kill it, so its end is no exit.
	killed bool
	exits  []string
	closed bool
}

// output keeps what all processes of a run write, up to a limit, and finds in it what must
// not be there.
type output struct {
	mu     sync.Mutex
	text   bytes.Buffer
	failed []string
	rest   []byte
	fail   *regexp.Regexp
}

// mostOutput bounds what is kept of a run's output.
const mostOutput = 4 << 20

// panics are lines with which a process ends that has failed.
var panics = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|Traceback \(most recent call last\)|thread '.*' panicked at|Exception in thread )|"msg":"(Observed a panic|recovered from panic)|Observed a panic`)

// Write takes output.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() < mostOutput {
		o.text.Write(text)
	}
	o.rest = append(o.rest, text...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole {
			break
		}
		if panics.Match(line) || o.fail != nil && o.fail.Match(line) {
			o.failed = append(o.failed, strings.TrimSpace(string(line)))
		}
		o.rest = bytes.Clone(rest)
	}
	return len(text), nil
}

// failures returns the lines that must not be there.
func (o *output) failures() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.failed...)
}

// tail returns the end of the output.
func (o *output) tail(lines int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := strings.Split(strings.TrimRight(o.text.String(), "\n"), "\n")
	return all[max(0, len(all)-lines):]
}

// another returns another process of the same operator, which is not started.
func (o *operator) another() *operator {
	return &operator{
		command: o.command, kubeconfig: o.kubeconfig, pod: o.pod, server: o.server, bin: o.bin, path: o.path,
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
	command.Env = append(os.Environ(), "KUBECONFIG="+o.kubeconfig, "PATH="+o.path)
	command.Stdout, command.Stderr = o.output, o.output
	// What it starts ends with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = 5 * time.Second
	if o.pod != "" {
		if err := incluster.Surround(command, o.pod, o.server); err != nil {
			return fmt.Errorf("start the operator: %w", err)
		}
	}
	if err := child.Start(command); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	ended := make(chan struct{})
	o.process, o.ended, o.killed = command, ended, false
	go func() {
		_ = command.Wait()
		o.over(command)
		close(ended)
	}()
	return nil
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
	o.exits = append(o.exits, command.ProcessState.String())
	time.AfterFunc(restartAfter, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.process == command && !o.closed && !o.killed {
			if err := o.launch(); err != nil {
				o.exits = append(o.exits, err.Error())
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

// ends returns how often, and how, it has ended by itself.
func (o *operator) ends() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.exits...)
}
