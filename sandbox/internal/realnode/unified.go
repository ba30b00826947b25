// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// unifiedMount is the mount point of the version 2 cgroup hierarchy.
const unifiedMount = "/sys/fs/cgroup"

// leaf is the name of the child cgroup to which the processes in the root cgroup are moved, because
// a cgroup with processes cannot enable controllers for its children.
const leaf = "tidekeeper-sandbox-others"

// unified is a version 2 cgroup tree. A cgroup's children have only the controllers that the cgroup
// enables for them.
type unified struct {
	root string
	// write writes a text to a file of a cgroup; mkdir creates a cgroup. Tests replace both
	// functions.
	write func(file, text string) error
	mkdir func(dir string) error
}

// unifiedTree returns this machine's version 2 cgroup tree, or nil if the machine uses version 1.
func unifiedTree(list []hierarchy) *unified {
	if !slices.ContainsFunc(list, func(h hierarchy) bool { return h.mount == unifiedMount && len(h.controllers) == 0 }) {
		return nil
	}
	return &unified{
		root:  unifiedMount,
		write: func(file, text string) error { return os.WriteFile(file, []byte(text), 0o600) },
		mkdir: func(dir string) error { return os.MkdirAll(dir, 0o755) },
	}
}

// controllers returns the words in a file of a cgroup, such as the names of controllers in
// cgroup.controllers.
func (u *unified) controllers(cgroup, file string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(cgroup, file))
	return strings.Fields(string(text)), err
}

// without returns the controllers that a kubelet needs and that are not in the given list.
func without(have []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(c string) bool { return slices.Contains(have, c) })
}

// turnOn enables, for the children of a cgroup, the controllers that a kubelet needs.
func (u *unified) turnOn(cgroup string) error {
	on, err := u.controllers(cgroup, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	missing := without(on)
	if len(missing) == 0 {
		return nil
	}
	if err := u.write(filepath.Join(cgroup, "cgroup.subtree_control"), "+"+strings.Join(missing, " +")); err != nil {
		return fmt.Errorf("turn on the controllers %s of cgroups below %s: %w", strings.Join(missing, ", "), cgroup, err)
	}
	return nil
}

// delegate enables, for the cgroups below the mounted root, the controllers that a kubelet needs.
// In a container, the mounted root is not the root of the machine's cgroup tree. Its processes must
// then be moved to a child cgroup first, because a cgroup with processes cannot enable controllers
// for its children.
func (u *unified) delegate() error {
	err := u.turnOn(u.root)
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	to := filepath.Join(u.root, leaf)
	if err := u.mkdir(to); err != nil {
		return err
	}
	// Try repeatedly, because processes in the root cgroup may start new processes while they are
	// moved.
	for range 10 {
		pids, err := u.controllers(u.root, "cgroup.procs")
		if err != nil {
			return err
		}
		for _, pid := range pids {
			// Ignore a process that has exited before it could be moved.
			if err := u.write(filepath.Join(to, "cgroup.procs"), pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("move the process %s to the cgroup %s: %w", pid, to, err)
			}
		}
		if err = u.turnOn(u.root); !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return err
}

// makeCgroup creates a cgroup and its missing ancestors. In each ancestor below the root, it
// enables the controllers that a kubelet needs.
func (u *unified) makeCgroup(name string) error {
	path := u.root
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		if path != u.root {
			if err := u.turnOn(path); err != nil {
				return err
			}
		}
		path = filepath.Join(path, part)
		if err := u.mkdir(path); err != nil {
			return fmt.Errorf("make a cgroup: %w", err)
		}
	}
	return nil
}

// DelegateCgroups prepares this machine's cgroups for real nodes. It must not run in a node's
// process, from which other processes are not visible and cannot be moved. Version 1 cgroups need
// no preparation.
func DelegateCgroups() error {
	list, err := mounted()
	if err != nil {
		return err
	}
	if u := unifiedTree(list); u != nil {
		return u.delegate()
	}
	return nil
}
