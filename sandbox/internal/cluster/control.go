// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/socket"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// Status is the status of a running sandbox.
type Status struct {
	DataDir Dir `json:"dataDir"`
	PID     int `json:"pid"`
	// Ready is set if the start is complete and all components are running.
	Ready      bool   `json:"ready"`
	APIServer  string `json:"apiServer"`
	Kubeconfig string `json:"kubeconfig"`
	Version    string `json:"kubernetesVersion"`
	AuditLog   string `json:"auditLog,omitempty"`

	// The fields from Nodes to Delays hold the options with which the sandbox was started.
	Nodes           int            `json:"nodes"`
	RealNodes       int            `json:"realNodes,omitempty"`
	Owner           int            `json:"owner,omitempty"`
	Kubernetes      Release        `json:"kubernetes,omitempty"`
	EmulatedVersion string         `json:"emulatedVersion,omitempty"`
	FeatureGates    string         `json:"featureGates,omitempty"`
	RuntimeConfig   string         `json:"runtimeConfig,omitempty"`
	KeepHistory     bool           `json:"keepHistory,omitempty"`
	PodEvents       bool           `json:"podEvents"`
	Delays          kubelet.Delays `json:"delays"`

	Started time.Time `json:"started"`
	Times   Times     `json:"times"`
	// RSSBytes is the total resident memory of all processes of the sandbox, including the process
	// that serves this status.
	RSSBytes   int64       `json:"rssBytes"`
	Components []Component `json:"components"`
}

// CameUp reports whether the start of the sandbox is complete, even if a component has exited since
// then.
func (s Status) CameUp() bool { return s.Times.Ready.Duration > 0 }

// Down describes each component that is not running by its name and state, such as "etcd is
// paused".
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

// Times holds the durations from the start of the sandbox until the API server is ready, and until
// the entire sandbox is ready. A duration is 0 until then.
type Times struct {
	APIServerReady metav1.Duration `json:"apiServerReady"`
	Ready          metav1.Duration `json:"ready"`
}

// Component is the status of a program that the sandbox runs, such as etcd.
type Component struct {
	supervisor.Status
	RSSBytes int64 `json:"rssBytes"`
	// LogTail lists the last lines of a crashed component's log. It is empty for other components.
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
		FeatureGates:    c.FeatureGates,
		RuntimeConfig:   c.RuntimeConfig,
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

// serveControl serves requests of the same user's processes on the control socket, until the
// returned function is called.
func (c *cluster) serveControl() (func(), error) {
	path := c.Dir.sockets().control()
	if dir := filepath.Dir(path); dir != string(c.Dir) {
		if err := makePrivate(dir); err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	// This process has locked the directory, so an existing socket must be left over from an
	// earlier run.
	_ = os.Remove(path)
	// Only this user may access the socket, even if other users have access to the directory.
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

// rss returns the resident memory of a process in bytes, or 0 if the process does not exist.
func rss(pid int) int64 {
	buf, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, resident int64
	_, _ = fmt.Sscan(string(buf), &size, &resident)
	return resident * int64(os.Getpagesize())
}
