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
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// Status is what a running sandbox says of itself.
type Status struct {
	DataDir    Dir    `json:"dataDir"`
	PID        int    `json:"pid"`
	Ready      bool   `json:"ready"`
	APIServer  string `json:"apiServer"`
	Kubeconfig string `json:"kubeconfig"`
	Version    string `json:"kubernetesVersion"`
	AuditLog   string `json:"auditLog,omitempty"`

	Started time.Time `json:"started"`
	Times   Times     `json:"times"`
	// RSSBytes is the memory of all processes, this one included.
	RSSBytes   int64       `json:"rssBytes"`
	Components []Component `json:"components"`
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
		DataDir:    c.Dir,
		PID:        os.Getpid(),
		Ready:      c.ready,
		APIServer:  c.settings.apiServer(),
		Kubeconfig: c.Dir.Kubeconfig(),
		Version:    kubernetesVersion(),
		Started:    c.started,
		Times:      c.times,
		RSSBytes:   rss(os.Getpid()),
	}
	if c.Kubeconfig != "" {
		s.Kubeconfig = c.Kubeconfig
	}
	if c.Audit {
		s.AuditLog = c.Dir.AuditLog()
	}
	for _, p := range c.supervisor.Status() {
		entry := Component{Status: p, RSSBytes: rss(p.PID)}
		if p.State == supervisor.Crashed {
			entry.LogTail = supervisor.Tail(p.Log, 10)
		}
		s.RSSBytes += entry.RSSBytes
		s.Components = append(s.Components, entry)
	}
	return s
}

// serveControl lets other processes of the same user ask and steer.
func (c *cluster) serveControl() (func(), error) {
	path := c.Dir.socket()
	if dir := filepath.Dir(path); dir != string(c.Dir) {
		if err := makePrivate(dir); err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	// The directory is locked: what is there is nobody's.
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
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

// makePrivate makes a directory in a place that everybody can write to, and
// refuses one that somebody else made there before: whoever owns the directory
// of a socket can put another in its place.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return err
	}
	if int(s.Uid) != os.Getuid() || s.Mode&0o022 != 0 {
		return fmt.Errorf("%s belongs to somebody else or others can write to it: give a --data-dir with a shorter name", dir)
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

// Status asks the running sandbox how it is.
func (d Dir) Status(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var s Status
	return s, d.call(ctx, http.MethodGet, "/status", &s)
}

// Act does something to a component of the running sandbox.
func (d Dir) Act(ctx context.Context, component, action string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return d.call(ctx, http.MethodPost, "/components/"+url.PathEscape(component)+"/"+action, nil)
}

// Stop stops the running sandbox and returns when its last process is gone. It
// says whether there was one.
func (d Dir) Stop(ctx context.Context) (bool, error) {
	if !d.Running() {
		return false, nil
	}
	pid := d.owner()
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return !d.Running(), nil // It went in this moment.
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
	waitGone(ctx, process, stopTimeout)
	_ = os.Remove(d.socket())
	return true, nil
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

// kubernetesVersion is the version of the control plane.
func kubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "k8s.io/kubernetes" {
				return m.Version
			}
		}
	}
	return "unknown"
}
