// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// wanted lists the cgroup controllers (kinds of resource limits) that a kubelet needs.
var wanted = []string{"cpu", "cpuset", "memory", "pids"}

// hierarchy is a mounted cgroup hierarchy.
type hierarchy struct {
	mount string
	// controllers lists the cgroup controllers of a version 1 hierarchy. It is empty for version 2.
	controllers []string
}

// hierarchies returns the cgroup hierarchies that are mounted according to the content of a file
// /proc/PID/mountinfo.
func hierarchies(mountinfo string) []hierarchy {
	var list []hierarchy
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		switch kind[0] {
		case "cgroup":
			list = append(list, hierarchy{mount: fields[4], controllers: strings.Split(kind[2], ",")})
		case "cgroup2":
			list = append(list, hierarchy{mount: fields[4]})
		}
	}
	return list
}

func mounted() ([]hierarchy, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	return hierarchies(string(mountinfo)), err
}

// checkCgroups returns an error if the machine lacks a cgroup controller that a kubelet needs.
func checkCgroups() error {
	list, err := mounted()
	if err != nil {
		return err
	}
	var have []string
	for _, h := range list {
		controllers := h.controllers
		if len(controllers) == 0 && h.mount == unifiedMount {
			// Read the available controllers. They need not be enabled yet, because DelegateCgroups
			// enables them.
			text, _ := os.ReadFile(filepath.Join(h.mount, "cgroup.controllers"))
			controllers = strings.Fields(string(text))
		}
		if unix.Access(h.mount, unix.W_OK) == nil {
			have = append(have, controllers...)
		}
	}
	if missing := without(have); len(missing) > 0 {
		return fmt.Errorf("real nodes need cgroups, and cannot use the controller %s here", strings.Join(missing, ", "))
	}
	return nil
}

// makeCgroup creates the named cgroup in all hierarchies.
func makeCgroup(name string) error {
	list, err := mounted()
	if err != nil {
		return err
	}
	if u := unifiedTree(list); u != nil {
		return u.makeCgroup(name)
	}
	for _, h := range list {
		if err := os.MkdirAll(filepath.Join(h.mount, name), 0o755); err != nil {
			return fmt.Errorf("make a cgroup: %w", err)
		}
	}
	return nil
}

// RemoveCgroup removes a cgroup and its descendants from all hierarchies. A cgroup that contains
// processes cannot be removed, so RemoveCgroup waits up to 10 seconds for them to exit.
func RemoveCgroup(name string) error {
	list, err := mounted()
	if err != nil {
		return err
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var failed error
		for _, h := range list {
			failed = errors.Join(failed, removeTree(filepath.Join(h.mount, name)))
		}
		if failed == nil || time.Now().After(end) {
			return failed
		}
	}
}

// removeTree removes a cgroup's descendants, and then the cgroup itself. It does not remove the
// files in a cgroup, because they disappear with the cgroup.
func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the cgroup %s: %w", path, err)
	}
	return nil
}
