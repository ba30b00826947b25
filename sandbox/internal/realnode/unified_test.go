// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// kernel is a fake version 2 cgroup tree in a directory. It reacts to writes to its files as the
// kernel would.
type kernel struct {
	t *testing.T
	// delegated is set if the root is not the root of the machine's cgroup tree, as in a container.
	delegated bool
	unified
}

// newKernel creates a cgroup tree whose root has the given controllers and processes. The list "on"
// contains the controllers that are already enabled for children.
func newKernel(t *testing.T, controllers, on, pids string, delegated bool) *kernel {
	t.Helper()
	k := &kernel{t: t, delegated: delegated}
	k.unified = unified{root: t.TempDir(), write: k.doWrite, mkdir: k.doMkdir}
	k.set(k.root, "cgroup.controllers", controllers)
	k.set(k.root, "cgroup.subtree_control", on)
	k.set(k.root, "cgroup.procs", pids)
	return k
}

func (k *kernel) set(cgroup, file, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(cgroup, file), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kernel) get(cgroup, file string) []string {
	k.t.Helper()
	words, err := k.controllers(cgroup, file)
	if err != nil {
		k.t.Fatal(err)
	}
	return words
}

// doMkdir creates a cgroup with the controllers that its parent has enabled for its children.
func (k *kernel) doMkdir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	k.set(dir, "cgroup.controllers", strings.Join(k.get(filepath.Dir(dir), "cgroup.subtree_control"), " "))
	k.set(dir, "cgroup.subtree_control", "")
	k.set(dir, "cgroup.procs", "")
	return nil
}

func (k *kernel) doWrite(path, text string) error {
	cgroup, file := filepath.Split(path)
	if file == "cgroup.procs" {
		left := slices.DeleteFunc(k.get(k.root, file), func(pid string) bool { return pid == text })
		k.set(k.root, file, strings.Join(left, "\n"))
		if text == "404" {
			return unix.ESRCH // The process has already exited.
		}
		k.set(cgroup, file, strings.Join(append(k.get(cgroup, file), text), "\n"))
		return nil
	}
	isTop := filepath.Clean(cgroup) == k.root && !k.delegated
	if len(k.get(cgroup, "cgroup.procs")) > 0 && !isTop {
		return unix.EBUSY
	}
	on := k.get(cgroup, file)
	for _, word := range strings.Fields(text) {
		name, plus := strings.CutPrefix(word, "+")
		if !plus || !slices.Contains(k.get(cgroup, "cgroup.controllers"), name) {
			return unix.ENOENT
		}
		on = append(on, name)
	}
	k.set(cgroup, file, strings.Join(on, " "))
	return nil
}

// TestUnifiedCgroups checks that a node's cgroup gets the controllers that a kubelet needs in three
// cases: systemd has enabled some of the controllers, the processes of a container are in the root
// of its tree, or all controllers are already enabled.
func TestUnifiedCgroups(t *testing.T) {
	const all = "cpuset cpu io memory hugetlb pids"
	for name, tc := range map[string]struct {
		on, pids  string
		delegated bool
		moved     []string
	}{
		"a machine":              {"cpu memory pids", "1\n2", false, nil},
		"a container":            {"", "1\n404\n17", true, []string{"1", "17"}},
		"a container that is so": {all, "", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, all, tc.on, tc.pids, tc.delegated)
			for range 2 { // The second pass simulates another node or the next start, which requires no changes.
				if err := k.delegate(); err != nil {
					t.Fatal(err)
				}
				if err := k.makeCgroup("/tidekeeper-sandbox-1/real-1"); err != nil {
					t.Fatal(err)
				}
			}
			if missing := without(k.get(filepath.Join(k.root, "tidekeeper-sandbox-1", "real-1"), "cgroup.controllers")); len(missing) > 0 {
				t.Errorf("the node has no %s", missing)
			}
			var moved []string
			if to := filepath.Join(k.root, leaf); tc.moved != nil {
				moved = k.get(to, "cgroup.procs")
			} else if _, err := os.Stat(to); err == nil {
				t.Error("there is a leaf, though nothing had to be moved")
			}
			if !slices.Equal(moved, tc.moved) {
				t.Errorf("moved %q, want %q", moved, tc.moved)
			}
		})
	}
}

// TestUnifiedCgroupsMissing checks that a controller that the cgroup tree lacks is reported as an
// error.
func TestUnifiedCgroupsMissing(t *testing.T) {
	err := newKernel(t, "cpu memory pids", "", "1", false).delegate()
	if err == nil || !strings.Contains(err.Error(), "turn on the controllers cpu, cpuset, memory, pids of cgroups below") {
		t.Error(err)
	}
}

func TestUnifiedTree(t *testing.T) {
	for mountinfo, want := range map[string]bool{
		"25 22 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 none rw,nsdelegate\n":                                                true,
		"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup none rw,cpu\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 none rw\n": false,
	} {
		if got := unifiedTree(hierarchies(mountinfo)) != nil; got != want {
			t.Errorf("%s: %t, want %t", mountinfo, got, want)
		}
	}
}
