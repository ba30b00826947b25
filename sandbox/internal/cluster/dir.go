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
)

// Dir is the data directory of a sandbox. It names the files; the types of its methods read and
// write them.
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

// Abs returns an absolute path, as lock and sockets require.
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

// Kubeconfig is the kubeconfig of the administrator.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// AuditLog is the audit log of the API server.
func (d Dir) AuditLog() string { return d.path("audit.log") }

// Log is the log of a detached sandbox.
func (d Dir) Log() string { return d.path("sandbox.log") }

// Logs is the directory of the logs of the components.
func (d Dir) Logs() string { return d.path("logs") }

// Images is the directory of the images for real nodes.
func (d Dir) Images() string { return d.path("images") }

// KubeletsSocket is the socket of the simulated kubelets, which accepts HTTP CONNECT.
func (d Dir) KubeletsSocket() string { return d.sockets().kubelets() }

// ProgramSocket is the socket of a program that runs as a pod with its own network, while there is such a
// program. It accepts HTTP CONNECT.
func (d Dir) ProgramSocket() string { return d.sockets().program() }

// Control returns a client of the sandbox that runs in the directory.
func (d Dir) Control() Control { return Control{dir: d, socket: d.sockets().control(), lock: d.lock()} }

// Access returns the credentials for the API server and etcd of the sandbox.
func (d Dir) Access() Access {
	return Access{credentials: d.credentials(), settings: d.settings(), admin: d.Kubeconfig()}
}

// RESTConfig returns the administrator's connection to the API server.
func (d Dir) RESTConfig() (*rest.Config, error) { return d.Access().RESTConfig() }

// Etcd returns a client for the etcd of the running sandbox.
func (d Dir) Etcd(ctx context.Context) (*clientv3.Client, error) { return d.Access().Etcd(ctx) }

func (d Dir) sockets() sockets       { return sockets{dir: string(d)} }
func (d Dir) settings() settingsFile { return settingsFile{dir: d} }
func (d Dir) lock() lockFile         { return lockFile(d.path("lock")) }
func (d Dir) marker() markerFile     { return markerFile{dir: d} }
func (d Dir) credentials() credentials {
	return credentials{pki: d.path("pki"), kubeconfigs: d.path("kubeconfigs")}
}

// processFiles are the files of a running sandbox. The marker is removed last: while it exists, the directory
// belongs to a sandbox.
var processFiles = []string{"control.sock", "kubelets.sock", "program.sock", "sandbox.log", "lock", marker}

// stateFiles are the files that remain when a sandbox stops.
var stateFiles = []string{"etcd", "pki", "logs", "kubeconfigs", "kubeconfig", "sandbox.json", "audit.log", "audit-policy.yaml", "egress.yaml", "nodes", "images"}

// copiedFiles are the state files that a copy of the data directory needs.
var copiedFiles = []string{marker, "etcd", "pki", "sandbox.json"}

// remove removes all files of a sandbox from the directory, and then the directory itself if it is empty.
func (d Dir) remove() {
	for _, name := range slices.Concat(stateFiles, processFiles) {
		_ = os.RemoveAll(d.path(name))
	}
	_ = os.Remove(string(d))
}

// clear removes the state of earlier runs only.
func (d Dir) clear() error {
	for _, name := range stateFiles {
		if err := os.RemoveAll(d.path(name)); err != nil {
			return fmt.Errorf("clear the data directory: %w", err)
		}
	}
	return nil
}

// CopyTo creates another data directory with the same state. No sandbox may run in this directory, and the
// other must not exist. A sandbox in the copy gets its own ports.
func (d Dir) CopyTo(other Dir) error {
	if d.lock().held() {
		return fmt.Errorf("a sandbox runs in %s: its state cannot be copied", d)
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
