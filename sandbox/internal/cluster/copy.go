// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// CopyTo makes another data directory with the same state. No sandbox may run in this one,
// and the other must not exist. A sandbox that starts there gets ports of its own.
func (d Dir) CopyTo(other Dir) error {
	if d.Running() {
		return fmt.Errorf("a sandbox runs in %s: its state cannot be copied", d)
	}
	if err := os.Mkdir(string(other), 0o700); err != nil {
		return fmt.Errorf("copy the data directory: %w", err)
	}
	for _, name := range []string{marker, "etcd", "pki", "sandbox.json"} {
		if err := copyAll(d.path(name), other.path(name)); err != nil {
			return fmt.Errorf("copy the data directory: %w", err)
		}
	}
	return nil
}

// copyAll copies a file, or a directory with all that is in it.
func copyAll(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(filepath.Clean(from))
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, info.Mode().Perm())
	}
	if err := os.Mkdir(to, info.Mode().Perm()); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := copyAll(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
