// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

// Dir is the path of a sandbox's data directory. Its methods return the paths of files in it, or
// types that read and write these files.
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

// Abs returns the absolute path of a data directory. It returns an error if the given path is
// empty.
func Abs(dir string) (Dir, error) {
	if dir == "" {
		return "", errors.New("the data directory has no name: give one with --data-dir")
	}
	abs, err := filepath.Abs(dir)
	return Dir(abs), err
}

func (d Dir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// AuditLog returns the path of the API server's audit log.
func (d Dir) AuditLog() string { return d.path("audit.log") }

// Log returns the path of a detached sandbox's log.
func (d Dir) Log() string { return d.path("sandbox.log") }

// Logs returns the directory of the component logs.
func (d Dir) Logs() string { return d.path("logs") }

// Images returns the directory of the container image archives that real nodes import.
func (d Dir) Images() string { return d.path("images") }

// KubeletsSocket returns the path of the socket through which clients connect to simulated kubelets
// with HTTP CONNECT.
func (d Dir) KubeletsSocket() string { return d.sockets().kubelets() }

// ProgramSocket returns the path of the socket through which clients connect, with HTTP CONNECT, to
// a program that runs as a pod in its own network namespace. The socket exists only while such a
// program is running.
func (d Dir) ProgramSocket() string { return d.sockets().program() }

// Control returns a client that controls the sandbox running in the directory.
func (d Dir) Control() Control { return Control{dir: d, socket: d.sockets().control(), lock: d.lock()} }

// Access returns access to the sandbox's API server and etcd.
func (d Dir) Access() Access {
	return Access{credentials: d.credentials(), settings: d.settings(), admin: d.Kubeconfig()}
}

// RESTConfig returns the client configuration with which the administrator connects to the API
// server.
func (d Dir) RESTConfig() (*rest.Config, error) { return d.Access().RESTConfig() }

// Etcd returns a client for the running sandbox's etcd.
func (d Dir) Etcd(ctx context.Context) (*clientv3.Client, error) { return d.Access().Etcd(ctx) }

func (d Dir) sockets() sockets       { return sockets{dir: string(d)} }
func (d Dir) settings() settingsFile { return settingsFile{dir: d} }
func (d Dir) lock() lockFile         { return lockFile(d.path("lock")) }
func (d Dir) marker() markerFile     { return markerFile{dir: d} }
func (d Dir) credentials() credentials {
	return credentials{pki: d.path("pki"), kubeconfigs: d.path("kubeconfigs")}
}

// processFiles lists the files that exist while a sandbox is running. The marker file comes last,
// so that a partly removed directory is still recognized as a sandbox's.
var processFiles = []string{"control.sock", "kubelets.sock", "program.sock", "sandbox.log", "lock", marker}

// stateFiles lists the files with the state of a sandbox, which remain after the sandbox has
// stopped.
var stateFiles = []string{"etcd", "pki", "logs", "kubeconfigs", "kubeconfig", "sandbox.json", "audit.log", "audit-policy.yaml", "egress.yaml", "nodes", "images"}

// copiedFiles lists the state files that a copy of the data directory needs.
var copiedFiles = []string{marker, "etcd", "pki", "sandbox.json"}

// remove removes all files of a sandbox from the directory. It then removes the directory itself if
// it is empty.
func (d Dir) remove() {
	for _, name := range slices.Concat(stateFiles, processFiles) {
		_ = os.RemoveAll(d.path(name))
	}
	_ = os.Remove(string(d))
}

// clear removes the state files of earlier runs. It keeps the lock, the marker and the sockets.
func (d Dir) clear() error {
	for _, name := range stateFiles {
		if err := os.RemoveAll(d.path(name)); err != nil {
			return fmt.Errorf("clear the data directory: %w", err)
		}
	}
	return nil
}

// CopyTo creates another data directory with the same state. The other directory must not exist. A
// sandbox in the copy gets its own ports. If a sandbox is running in this directory, its etcd is paused
// meanwhile: the copied files are those of an etcd that was killed, from which etcd recovers.
func (d Dir) CopyTo(ctx context.Context, other Dir) (err error) {
	if running := d.Control(); running.Running() {
		if err := running.Act(ctx, component.Etcd, "pause"); err != nil {
			return fmt.Errorf("copy the data directory: %w", err)
		}
		defer func() {
			err = errors.Join(err, running.Act(context.WithoutCancel(ctx), component.Etcd, "resume"))
		}()
	}
	if err := os.Mkdir(string(other), 0o700); err != nil {
		return fmt.Errorf("copy the data directory: %w", err)
	}
	for _, name := range copiedFiles {
		if err := copyAll(d.path(name), other.path(name)); err != nil {
			return fmt.Errorf("copy the data directory: %w", err)
		}
	}
	return nil
}
