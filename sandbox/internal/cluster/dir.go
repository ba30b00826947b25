// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the control plane of one sandbox, which lives in one
// directory, and lets other processes look at it and steer it.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is the data directory of a sandbox.
type Dir string

// DefaultDir returns the default data directory.
func DefaultDir() (Dir, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return Dir(filepath.Join(dir, "tidekeeper-sandbox")), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the sandbox is known (%w): give it one with --data-dir", err)
	}
	return Dir(filepath.Join(home, ".local", "state", "tidekeeper-sandbox")), nil
}

func (d Dir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Kubeconfig is the kubeconfig of the administrator.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// AuditLog is the audit log of the API server.
func (d Dir) AuditLog() string { return d.path("audit.log") }

// Log is the log of a detached sandbox.
func (d Dir) Log() string { return d.path("sandbox.log") }

// Logs is the directory of the logs of the components.
func (d Dir) Logs() string { return d.path("logs") }

func (d Dir) log(component string) string { return d.path("logs", component+".log") }
func (d Dir) pki() string                 { return d.path("pki") }
func (d Dir) lock() string                { return d.path("lock") }

// parts are what a sandbox puts into its directory, beside its state; the marker
// is the last, since the directory is a sandbox's for as long as it is there.
var parts = []string{"control.sock", "kubelets.sock", "program.sock", "sandbox.log", "lock", marker}

// state is where the parts of a sandbox are kept that outlive its processes.
var state = []string{"etcd", "pki", "logs", "kubeconfigs", "kubeconfig", "sandbox.json", "audit.log", "audit-policy.yaml", "egress.yaml", "nodes", "images"}

// socket is where a running sandbox can be spoken to. The kernel allows a
// socket's path little more than a hundred bytes, so that of a directory with
// a long name lies elsewhere.
func (d Dir) socket() string { return d.shortPath("control.sock") }

// shortPath is the path of a socket.
func (d Dir) shortPath(name string) string {
	const longest = 100
	if path := d.path(name); len(path) <= longest {
		return path
	}
	sum := fnv.New64a()
	sum.Write([]byte(d.path(name)))
	return filepath.Join("/tmp", fmt.Sprintf("tidekeeper-sandbox-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum.Sum64()))
}

// KubeletsSocket is where the simulated kubelets can be asked, by HTTP CONNECT.
func (d Dir) KubeletsSocket() string { return d.shortPath("kubelets.sock") }

// ProgramSocket is where a program with a network of its own that runs as a pod can be reached, by
// HTTP CONNECT, while there is one.
func (d Dir) ProgramSocket() string { return d.shortPath("program.sock") }

// settings are kept between runs.
type settings struct {
	// Ports are what the components got last time and try to get again, so that
	// a kubeconfig stays valid.
	APIServerPort int `json:"apiServerPort,omitempty"`
	EtcdPort      int `json:"etcdPort,omitempty"`
}

func (d Dir) loadSettings() (settings, error) {
	var s settings
	buf, err := os.ReadFile(d.path("sandbox.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("there is no sandbox in %s: start one with 'sandbox up', or say where it is with --data-dir", d)
	} else if err != nil {
		return s, err
	}
	if err := json.Unmarshal(buf, &s); err != nil {
		return s, fmt.Errorf("%s is damaged (%w): start over with 'sandbox up --fresh'", d.path("sandbox.json"), err)
	}
	return s, nil
}

func (d Dir) saveSettings(s settings) error {
	buf, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(d.path("sandbox.json"), buf, 0o600)
}

// RunningError says that a sandbox already runs in a directory.
type RunningError struct {
	Dir Dir
	PID int
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("a sandbox already runs in %s (pid %d): stop it with 'sandbox down --data-dir %s', or give this one another --data-dir", e.Dir, e.PID, e.Dir)
}

// acquire makes the directory if need be and locks it for this process. The
// lock ends with the file or with the process, however it ends.
func (d Dir) acquire(keeping keeping) (*os.File, error) {
	old, err := d.mark()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	if err := d.keepOthersOut(); err != nil {
		return nil, err
	}
	if old == unmarked {
		// It is marked before there is anything else in it.
		if err := d.write(keeping.mark(), old); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(d.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	// A process that checks whether the lock is taken holds it for a few microseconds.
	for range 20 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			if err = d.take(f, keeping); err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &RunningError{Dir: d, PID: d.owner()}
	}
	return nil, fmt.Errorf("lock the data directory: %w", err)
}

// Running reports whether a process has the directory locked.
func (d Dir) Running() bool {
	f, err := os.Open(d.lock())
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// NotRunning is the error returned when no sandbox runs in the directory.
func (d Dir) NotRunning() error {
	return fmt.Errorf("no sandbox runs in %s: start one with 'sandbox up', or say where it is with --data-dir", d)
}

// owner returns the process that runs the sandbox, or ran the last one.
func (d Dir) owner() int {
	if pid, err := peer(context.Background(), d.socket()); err == nil {
		return pid
	}
	buf, _ := os.ReadFile(d.lock())
	pid, _ := strconv.Atoi(strings.TrimSpace(string(buf)))
	return pid
}

// remove removes all that sandboxes have put into the directory, and then the
// directory, unless there are other files in it.
func (d Dir) remove() {
	for _, name := range slices.Concat(state, parts) {
		_ = os.RemoveAll(d.path(name))
	}
	_ = os.Remove(string(d))
}

// clear removes the state of earlier runs, and nothing else.
func (d Dir) clear() error {
	for _, name := range state {
		if err := os.RemoveAll(d.path(name)); err != nil {
			return fmt.Errorf("clear the data directory: %w", err)
		}
	}
	return nil
}

// check finds out what keeps such a sandbox from running anywhere.
func (o Options) check() error {
	if err := o.checkRelease(); err != nil {
		return err
	}
	return errors.Join(mayOverwrite(o.Kubeconfig), o.checkRealNodes())
}

// Check finds out, before anything is started, what would keep a sandbox from
// starting here, and makes the directory.
func (o Options) Check() error {
	if err := o.check(); err != nil {
		return err
	}
	lock, err := o.Dir.acquire(o.keeping())
	if err != nil {
		return err
	}
	return lock.Close()
}
