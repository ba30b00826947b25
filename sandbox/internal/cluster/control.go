// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/socket"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// Status is the state of a running sandbox.
type Status struct {
	DataDir Dir `json:"dataDir"`
	PID     int `json:"pid"`
	// Ready: it has started, and all components run.
	Ready      bool   `json:"ready"`
	APIServer  string `json:"apiServer"`
	Kubeconfig string `json:"kubeconfig"`
	Version    string `json:"kubernetesVersion"`
	AuditLog   string `json:"auditLog,omitempty"`

	// What it was started with.
	Nodes           int            `json:"nodes"`
	RealNodes       int            `json:"realNodes,omitempty"`
	Owner           int            `json:"owner,omitempty"`
	Kubernetes      Release        `json:"kubernetes,omitempty"`
	EmulatedVersion string         `json:"emulatedVersion,omitempty"`
	KeepHistory     bool           `json:"keepHistory,omitempty"`
	PodEvents       bool           `json:"podEvents"`
	Delays          kubelet.Delays `json:"delays"`

	Started time.Time `json:"started"`
	Times   Times     `json:"times"`
	// RSSBytes is the memory of all processes, this one included.
	RSSBytes   int64       `json:"rssBytes"`
	Components []Component `json:"components"`
}

// CameUp reports whether the start is complete.
func (s Status) CameUp() bool { return s.Times.Ready.Duration > 0 }

// Down returns the components that do not run, each with its state.
func (s Status) Down() []string {
	var down []string
	for _, c := range s.Components {
		switch c.State {
		case supervisor.Running:
		case supervisor.Paused:
			down = append(down, c.Name+" is paused")
		case supervisor.Crashed:
			down = append(down, c.Name+" has crashed")
		default:
			down = append(down, fmt.Sprintf("%s was %s", c.Name, c.State))
		}
	}
	return down
}

// Times are how long the start took.
type Times struct {
	APIServerReady metav1.Duration `json:"apiServerReady"`
	Ready          metav1.Duration `json:"ready"`
}

// Component is the status of a component.
type Component struct {
	supervisor.Status
	RSSBytes int64 `json:"rssBytes"`
	// LogTail is how the log of a crashed component ends.
	LogTail []string `json:"logTail,omitempty"`
}

func (c *cluster) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{
		DataDir:         c.Dir,
		PID:             os.Getpid(),
		APIServer:       c.settings.apiServer(),
		Kubeconfig:      c.Dir.Kubeconfig(),
		Version:         c.version,
		Nodes:           c.Nodes,
		RealNodes:       c.RealNodes,
		Kubernetes:      c.Kubernetes,
		EmulatedVersion: c.EmulatedVersion,
		KeepHistory:     c.KeepHistory,
		PodEvents:       c.PodEvents,
		Delays:          c.Delays,
		Started:         c.started,
		Times:           c.times,
		RSSBytes:        rss(os.Getpid()),
	}
	if c.Kubeconfig != "" {
		s.Kubeconfig = c.Kubeconfig
	}
	if c.Audit {
		s.AuditLog = c.Dir.AuditLog()
	}
	if c.Owner != nil {
		s.Owner = c.Owner.PID
	}
	for _, p := range c.supervisor.Status() {
		entry := Component{Status: p, RSSBytes: rss(p.PID)}
		if p.State == supervisor.Crashed {
			entry.LogTail = supervisor.Tail(p.Log, 10)
		}
		s.RSSBytes += entry.RSSBytes
		s.Components = append(s.Components, entry)
	}
	s.Ready = c.ready && len(s.Down()) == 0
	return s
}

// serveControl serves the control socket to other processes of the same user.
func (c *cluster) serveControl() (func(), error) {
	path := c.Dir.socket()
	if dir := filepath.Dir(path); dir != string(c.Dir) {
		if err := makePrivate(dir); err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	// The directory is locked, so that no process uses a socket that is there.
	_ = os.Remove(path)
	// Other users may have access to the directory.
	listener, err := socket.Listen(context.Background(), path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	actions := map[string]func(string) error{
		"kill":   c.supervisor.Kill,
		"pause":  c.supervisor.Pause,
		"resume": c.supervisor.Resume,
		"start":  c.supervisor.Restart,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(c.status())
	})
	mux.HandleFunc("POST /stop", func(http.ResponseWriter, *http.Request) { c.stop() })
	mux.HandleFunc("POST /components/{name}/{action}", func(w http.ResponseWriter, r *http.Request) {
		action, ok := actions[r.PathValue("action")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if err := action(r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	// Closing the listener removes the socket.
	return func() { _ = server.Close() }, nil
}

// makePrivate creates a directory in a place that every user can write to, and
// refuses one that another user created there before: the owner of the directory
// of a socket can replace the socket.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return err
	}
	if int(s.Uid) != os.Getuid() || s.Mode&0o022 != 0 {
		return fmt.Errorf("%s belongs to another user, or other users can write to it: give a --data-dir with a shorter name", dir)
	}
	return nil
}

// call asks the sandbox that runs in a directory.
func (d Dir) call(ctx context.Context, method, path string, answer any) error {
	if !d.Running() {
		return d.NotRunning()
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", d.socket())
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://sandbox"+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the sandbox in %s (pid %d) does not answer: %w", d, d.owner(), err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(body)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(body, answer)
}

// Status returns the state of the running sandbox.
func (d Dir) Status(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var s Status
	return s, d.call(ctx, http.MethodGet, "/status", &s)
}

// Await waits until the running sandbox is ready and returns its state.
func (d Dir) Await(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("the sandbox that starts in %s was not ready after %s: see %s, or stop it with 'sandbox down'", d, startTimeout, d.path("logs")))
	defer cancel()
	for {
		s, err := d.Status(ctx)
		if err == nil && s.CameUp() {
			return s, nil
		}
		if !d.Running() {
			return s, d.NotRunning()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
}

// Act does something to a component of the running sandbox.
func (d Dir) Act(ctx context.Context, component, action string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return d.call(ctx, http.MethodPost, "/components/"+url.PathEscape(component)+"/"+action, nil)
}

// Stop stops the running sandbox and returns when its last process is gone. It
// reports whether there was one.
func (d Dir) Stop(ctx context.Context) (bool, error) {
	if !d.Running() {
		// It may have been killed.
		return false, d.removeCgroups()
	}
	ran, err := d.stop(ctx)
	return ran, errors.Join(err, d.removeCgroups())
}

func (d Dir) stop(ctx context.Context) (bool, error) {
	pid, err := d.process(ctx)
	if err != nil || pid == 0 {
		return pid != 0, err
	}
	process, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return true, nil // It has just ended.
	case err != nil:
		// The kernel does not have pidfds, or a seccomp profile forbids them.
		return true, d.stopUnwatched(ctx, pid)
	}
	defer unix.Close(process)
	asked, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := d.call(asked, http.MethodPost, "/stop", nil); err == nil && waitGone(ctx, process, 4*stopTimeout) {
		return true, nil
	}
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	// It hangs. The kernel ends its children with it.
	if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return true, fmt.Errorf("end process %d: %w", pid, err)
	}
	if !waitGone(ctx, process, stopTimeout) {
		return true, fmt.Errorf("process %d was killed and has not ended yet", pid)
	}
	_ = os.Remove(d.socket())
	return true, nil
}

// stopUnwatched stops the sandbox where its process cannot be held by a
// descriptor. One that does not stop is left alone: by the time it is killed, its
// ID may be another process'.
func (d Dir) stopUnwatched(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, 4*stopTimeout)
	defer cancel()
	err := d.call(ctx, http.MethodPost, "/stop", nil)
	for ctx.Err() == nil && err == nil {
		// The lock ends with the process.
		if !d.Running() {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the sandbox in %s does not stop: end process %d", d, pid)
}

// process returns the ID of the process that serves the socket, even if it hangs. A
// sandbox that is just starting has no socket yet; if it ends before it has one,
// there is no process.
func (d Dir) process(ctx context.Context) (int, error) {
	var err error
	for range 50 {
		var pid int
		if pid, err = peer(ctx, d.socket()); err == nil {
			return pid, nil
		}
		if !d.Running() {
			return 0, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return 0, fmt.Errorf("a process has the data directory %s locked, and does not answer as a sandbox does (%w): look for it with 'fuser %s'", d, err, d.lock())
}

// peer returns the process that listens on a socket.
func peer(ctx context.Context, socket string) (int, error) {
	connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	raw, err := connection.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, err
	}
	if credentials.Pid <= 0 {
		return 0, errors.New("its process is in another PID namespace")
	}
	return int(credentials.Pid), nil
}

func waitGone(ctx context.Context, process int, timeout time.Duration) bool {
	for end := time.Now().Add(timeout); time.Now().Before(end) && ctx.Err() == nil; {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, 100)
		if n > 0 {
			return true
		}
	}
	return false
}

// rss is the resident memory of a process.
func rss(pid int) int64 {
	buf, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, resident int64
	_, _ = fmt.Sscan(string(buf), &size, &resident)
	return resident * int64(os.Getpagesize())
}
