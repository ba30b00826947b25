// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the control plane of one sandbox, which lives in one
// directory, and lets other processes look at it and steer it.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is the directory that everything of a sandbox lies in.
type Dir string

// DefaultDir is where a sandbox lies that nobody gave a directory.
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

// AuditLog is where the API server writes who did what.
func (d Dir) AuditLog() string { return d.path("audit.log") }

// Log is what a detached sandbox says.
func (d Dir) Log() string { return d.path("sandbox.log") }

func (d Dir) log(component string) string { return d.path("logs", component+".log") }
func (d Dir) pki() string                 { return d.path("pki") }
func (d Dir) lock() string                { return d.path("lock") }

// state is where the parts of a sandbox are kept that outlive its processes.
var state = []string{"etcd", "pki", "logs", "kubeconfigs", "kubeconfig", "sandbox.json", "audit.log", "audit-policy.yaml"}

// socket is where a running sandbox can be spoken to. The kernel allows a
// socket's path little more than a hundred bytes, so that of a directory with
// a long name lies elsewhere.
func (d Dir) socket() string {
	const longest = 100
	if path := d.path("control.sock"); len(path) <= longest {
		return path
	}
	sum := fnv.New64a()
	sum.Write([]byte(d))
	return filepath.Join("/tmp", fmt.Sprintf("tidekeeper-sandbox-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum.Sum64()))
}

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
		return s, fmt.Errorf("%s is damaged (%w): start anew with 'sandbox up --fresh'", d.path("sandbox.json"), err)
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
func (d Dir) acquire() (*os.File, error) {
	if err := d.belongsToSandbox(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	f, err := os.OpenFile(d.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	// Somebody who only looks whether the lock is taken has it for a moment.
	for range 20 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			if err = f.Truncate(0); err == nil {
				_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
			}
			return f, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &RunningError{Dir: d, PID: d.owner()}
	}
	return nil, fmt.Errorf("lock the data directory: %w", err)
}

// belongsToSandbox refuses a directory with files in it that are not a
// sandbox's: it might be given by mistake.
func (d Dir) belongsToSandbox() error {
	entries, err := os.ReadDir(string(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("the data directory %s is a file: give another --data-dir", d)
	case err != nil:
		return fmt.Errorf("read the data directory: %w", err)
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(d.lock()); err != nil {
		return fmt.Errorf("the data directory %s has files in it that are not a sandbox's: give another --data-dir", d)
	}
	return nil
}

// Running tells whether a process has the directory locked.
func (d Dir) Running() bool {
	f, err := os.Open(d.lock())
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// NotRunning is the error of who needs a running sandbox and finds none.
func (d Dir) NotRunning() error {
	return fmt.Errorf("no sandbox runs in %s: start one with 'sandbox up', or say where it is with --data-dir", d)
}

// owner returns the process that locked the directory last.
func (d Dir) owner() int {
	buf, _ := os.ReadFile(d.lock())
	pid, _ := strconv.Atoi(strings.TrimSpace(string(buf)))
	return pid
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

// Check finds out, before anything is started, what would keep a sandbox from
// starting here, and makes the directory.
func (d Dir) Check(kubeconfig string) error {
	if err := mayOverwrite(kubeconfig); err != nil {
		return err
	}
	lock, err := d.acquire()
	if err != nil {
		return err
	}
	return lock.Close()
}
