// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs child processes, which are killed when this process exits.
package supervisor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tidekeeper.dev/tidekeeper/sandbox/client/child"
)

// State is the state of a process.
type State string

// States of a process.
const (
	// Running means that the process runs.
	Running State = "running"
	// Paused means that the process was stopped by SIGSTOP and can be resumed.
	Paused State = "paused"
	// Stopped means that the process exited after [Supervisor.Stop] had sent it SIGTERM.
	Stopped State = "stopped"
	// Killed means that the process was killed by [Supervisor.Kill].
	Killed State = "killed"
	// Crashed means that the process exited unexpectedly.
	Crashed State = "crashed"
)

// Spec describes how to start a process.
type Spec struct {
	// Name identifies the process. It is also the process's argv[0], unless Program is set.
	Name string
	// Program is the argv[0] of the process. It defaults to Name.
	Program string
	// Path is the path of the executable. It defaults to this process's executable.
	Path string
	// Namespaces are the clone(2) flags for the Linux namespaces to create for the process.
	Namespaces uintptr
	// Args lists the arguments after argv[0].
	Args []string
	// Log is the file to which standard output and standard error are appended.
	Log string
	// Port is the port on which the process listens, or 0 if there is none. It is only reported in
	// [Status].
	Port int
	// StopTimeout is the maximum time for the process to exit after SIGTERM. The process is then
	// killed.
	StopTimeout time.Duration
}

// Status is the current status of a process.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// PID is the process ID, or 0 if the process has exited.
	PID  int `json:"pid,omitempty"`
	Port int `json:"port,omitempty"`
	// Restarts counts how often [Supervisor.Restart] has restarted the process.
	Restarts int       `json:"restarts"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// Exit describes how the process exited, with an exit code or a signal. It is empty while the
	// process has not exited.
	Exit string `json:"exit,omitempty"`
	Log  string `json:"log"`
}

// Exit describes a process that has exited.
type Exit struct {
	Status
	// Tail lists the last lines of the process's log.
	Tail []string
}

type process struct {
	spec   Spec
	status Status
	cmd    *exec.Cmd
	done   chan struct{}
}

// Supervisor starts processes and reports their exits.
type Supervisor struct {
	// OnExit is called when a process has crashed.
	OnExit func(Exit)

	// launching is locked while a process is started, so that no process is started twice or after
	// a call of Stop.
	launching sync.Mutex
	stopped   bool

	mu        sync.Mutex
	processes []*process
}

// New returns a supervisor without processes.
func New() *Supervisor { return &Supervisor{} }

// Start starts a new process as spec describes.
func (s *Supervisor) Start(spec Spec) error {
	s.launching.Lock()
	defer s.launching.Unlock()
	p := &process{spec: spec, status: Status{Name: spec.Name, Port: spec.Port, Log: spec.Log}}
	if err := s.launch(p); err != nil {
		return err
	}
	s.mu.Lock()
	s.processes = append(s.processes, p)
	s.mu.Unlock()
	return nil
}

// launch starts the process, and a goroutine that waits until it exits.
func (s *Supervisor) launch(p *process) error {
	if s.stopped {
		return fmt.Errorf("%s is not started any more: all components are being stopped", p.spec.Name)
	}
	log, err := os.OpenFile(p.spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := &exec.Cmd{
		// By default, run this process's executable, even if the file has been replaced since.
		Path:   cmp.Or(p.spec.Path, "/proc/self/exe"),
		Args:   append([]string{cmp.Or(p.spec.Program, p.spec.Name)}, p.spec.Args...),
		Stdout: log,
		Stderr: log,
		// Put child processes into their own process groups: Ctrl-C in the terminal must reach only
		// the supervisor, which then stops the child processes in order.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Cloneflags: p.spec.Namespaces},
	}
	// Child processes are killed when the supervisor exits, even if the supervisor is killed.
	if err := child.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	done := make(chan struct{})
	s.mu.Lock()
	p.cmd, p.done = cmd, done
	p.status.State = Running
	p.status.PID = cmd.Process.Pid
	p.status.Started = time.Now()
	p.status.Ended = time.Time{}
	p.status.Exit = ""
	s.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		s.ended(p, cmd.ProcessState)
		close(done)
	}()
	return nil
}

func (s *Supervisor) ended(p *process, state *os.ProcessState) {
	s.mu.Lock()
	p.status.PID = 0
	p.status.Ended = time.Now()
	p.status.Exit = describe(state)
	crashed := p.status.State == Running || p.status.State == Paused
	if crashed {
		p.status.State = Crashed
	}
	status := p.status
	s.mu.Unlock()
	if crashed && s.OnExit != nil {
		s.OnExit(Exit{Status: status, Tail: Tail(p.spec.Log, 10)})
	}
}

func describe(state *os.ProcessState) string {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return unix.SignalName(ws.Signal())
	}
	return fmt.Sprintf("exit code %d", state.ExitCode())
}

func (s *Supervisor) find(name string) (*process, error) {
	for _, p := range s.processes {
		if p.spec.Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no component is named %q: want one of %s", name, strings.Join(s.names(), ", "))
}

func (s *Supervisor) names() []string {
	var names []string
	for _, p := range s.processes {
		names = append(names, p.spec.Name)
	}
	return names
}

// Status returns the status of all processes, in the order of their first starts.
func (s *Supervisor) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Status
	for _, p := range s.processes {
		list = append(list, p.status)
	}
	return list
}

// Kill sends SIGKILL to a process and waits until it has terminated.
func (s *Supervisor) Kill(name string) error {
	done, err := s.signal(name, syscall.SIGKILL, Killed, Running, Paused)
	if err != nil {
		return err
	}
	<-done
	return nil
}

// Pause suspends a process with SIGSTOP. It returns when all threads of the process have stopped.
func (s *Supervisor) Pause(name string) error {
	_, err := s.signal(name, syscall.SIGSTOP, Paused, Running)
	return err
}

// Resume resumes a paused process.
func (s *Supervisor) Resume(name string) error {
	_, err := s.signal(name, syscall.SIGCONT, Running, Paused)
	return err
}

// signal sends a signal to a process if the process is in one of the states `wanted`, and sets its
// state to `next`. The returned channel is closed when the process has exited.
func (s *Supervisor) signal(name string, sig syscall.Signal, next State, wanted ...State) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(wanted, p.status.State) {
		return nil, fmt.Errorf("%s is %s", name, p.status.State)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		return nil, fmt.Errorf("%s to %s: %w", unix.SignalName(sig), name, err)
	}
	if sig == syscall.SIGSTOP {
		awaitStopped(p.cmd.Process.Pid)
	}
	p.status.State = next
	return p.done, nil
}

// awaitStopped waits until all threads of a child process to which SIGSTOP was sent have stopped, or
// until the process has exited.
func awaitStopped(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// Restart restarts a process that has exited.
func (s *Supervisor) Restart(name string) error {
	s.launching.Lock()
	defer s.launching.Unlock()
	s.mu.Lock()
	p, err := s.find(name)
	if err == nil && p.status.PID != 0 {
		err = fmt.Errorf("%s is %s", name, p.status.State)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.launch(p); err != nil {
		return err
	}
	s.mu.Lock()
	p.status.Restarts++
	s.mu.Unlock()
	return nil
}

// Stop terminates all processes and waits until they have exited. The processes named in `first`
// are terminated first, concurrently. The other processes follow one by one, in the reverse order
// of their starts. A process that does not exit within its StopTimeout is killed.
func (s *Supervisor) Stop(first ...string) {
	s.launching.Lock()
	s.stopped = true
	s.launching.Unlock()
	s.mu.Lock()
	list := slices.Clone(s.processes)
	s.mu.Unlock()
	var group sync.WaitGroup
	for _, p := range list {
		if slices.Contains(first, p.spec.Name) {
			group.Go(func() { s.stop(p) })
		}
	}
	group.Wait()
	for _, p := range slices.Backward(list) {
		s.stop(p)
	}
}

func (s *Supervisor) stop(p *process) {
	s.mu.Lock()
	if p.status.PID == 0 {
		s.mu.Unlock()
		return
	}
	p.status.State = Stopped
	process, done := p.cmd.Process, p.done
	s.mu.Unlock()
	// A paused process must be resumed to handle SIGTERM.
	if err := process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = process.Kill()
	}
	_ = process.Signal(syscall.SIGCONT)
	select {
	case <-done:
	case <-time.After(p.spec.StopTimeout):
		_ = process.Kill()
		<-done
	}
}

// Tail returns the last lines of a file, or nothing if the file cannot be read.
func Tail(file string, lines int) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = 64 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, 2)
	}
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(f); err != nil {
		return nil
	}
	all := bytes.Split(bytes.TrimRight(buf.Bytes(), "\n"), []byte("\n"))
	var tail []string
	for _, line := range all[max(0, len(all)-lines):] {
		if len(line) > 0 {
			tail = append(tail, string(line))
		}
	}
	return tail
}
