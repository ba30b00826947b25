// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// include merges the included files into the workload. Lists start with the included items; single
// values of the workload itself take precedence. `dir` is the directory of the workload file.
func (w *Workload) include(dir string) error {
	for i, name := range slices.Backward(w.Include) {
		name = within(dir, name)
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("include[%d]: %w", i, err)
		}
		common := &Workload{}
		if err := errors.Join(common.parse(text), common.expand()); err != nil {
			return fmt.Errorf("include[%d]: %s: %w", i, name, err)
		}
		if len(common.Steps)+len(common.Include) > 0 {
			return fmt.Errorf("include[%d]: %s: it has steps or an include: want only what workloads have in common", i, name)
		}
		for j, path := range common.Install {
			if filepath.IsAbs(path) {
				continue
			}
			if common.Install[j], err = filepath.Rel(dir, filepath.Join(filepath.Dir(name), path)); err != nil {
				return fmt.Errorf("include[%d]: %s: install[%d]: %w", i, name, j, err)
			}
		}
		if err := errors.Join(common.Check(), installable(common.Install, dir)); err != nil {
			return fmt.Errorf("include[%d]: %s: %w", i, name, err)
		}
		w.Install = append(common.Install, w.Install...)
		w.Programs = append(common.Programs, w.Programs...)
		w.Applications = append(common.Applications, w.Applications...)
		w.Invariants = append(common.Invariants, w.Invariants...)
		w.Unjudged = append(common.Unjudged, w.Unjudged...)
		w.WithoutControllers = append(common.WithoutControllers, w.WithoutControllers...)
		w.ServiceAccount = cmp.Or(w.ServiceAccount, common.ServiceAccount)
		w.HostNetwork = w.HostNetwork || common.HostNetwork
		if w.Nodes == nil {
			w.Nodes = common.Nodes
		}
	}
	w.Include = nil
	return nil
}

// Setting returns the part of the workload that fuzz uses, too: the objects, programs and applications
// that are there before the operator starts, and the operator's identity and network.
func (w *Workload) Setting() *Workload {
	return &Workload{
		Nodes: w.Nodes, Install: w.Install, Programs: w.Programs, Applications: w.Applications,
		HostNetwork: w.HostNetwork, ServiceAccount: w.ServiceAccount, WithoutControllers: w.WithoutControllers,
	}
}

// expand replaces environment variable references in the paths of Install.
func (w *Workload) expand() error {
	var problems []error
	for i, path := range w.Install {
		w.Install[i] = os.Expand(path, func(name string) string {
			value := os.Getenv(name)
			if value == "" {
				problems = append(problems, fmt.Errorf("install[%d]: %s: the environment has no %s", i, path, name))
			}
			return value
		})
	}
	return errors.Join(problems...)
}

// installable returns an error if a file or directory to install does not exist.
func installable(paths []string, dir string) error {
	for i, path := range paths {
		file := within(dir, path)
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) && !filepath.IsAbs(path) {
			return fmt.Errorf("install[%d]: there is no %s: names are relative to the directory of the file that has them, so this one is looked for at %s", i, path, file)
		} else if err != nil {
			return fmt.Errorf("install[%d]: %w", i, err)
		}
	}
	return nil
}

// within resolves a path relative to the directory `dir`, unless the path is absolute.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
