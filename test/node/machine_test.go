// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// process is a process that a sandbox has started.
type process struct {
	pid     int
	program string
}

func (p process) kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		t.Fatalf("%s: %v", p.program, err)
	}
}

// cgroupOf returns the name of the cgroup that contains a sandbox's nodes. It is derived from the
// sandbox's data directory and is the same in all cgroup hierarchies.
func cgroupOf(dir string) string {
	sum := fnv.New64a()
	sum.Write([]byte(dir))
	return fmt.Sprintf("tidekeeper-sandbox-%x", sum.Sum64())
}

// processesOf returns the processes that have a path in the data directory among their arguments,
// or are in a cgroup of the sandbox's nodes.
func processesOf(t *testing.T, dir string) []process {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []process
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		cmdline, _ := os.ReadFile(file)
		if cgroups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); pid != os.Getpid() &&
			(strings.Contains(string(cmdline), dir) || strings.Contains(string(cgroups), cgroupOf(dir))) {
			program, _, _ := strings.Cut(string(cmdline), "\x00")
			found = append(found, process{pid, program})
		}
	}
	return found
}

// kernelSettings lists kernel settings that a kubelet changes when it has the machine to itself.
var kernelSettings = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/hostname", "net/ipv4/ip_forward"}

// directories lists directories that a kubelet or containerd creates by default.
var directories = []string{"/var/lib/kubelet", "/var/lib/cni", "/var/lib/containerd", "/run/containerd", "/var/log/pods", "/var/log/containers", "/opt/containerd", "/opt/cni", "/etc/cni", "/usr/libexec/kubernetes"}

// machine returns the state of this machine that a node could have changed: devices, settings,
// directories and routes. If `dir` is not empty, it also returns the mounts, processes and cgroups
// that belong to the sandbox in that directory.
func machine(t *testing.T, dir string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	devices, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range devices {
		all["devices"] = append(all["devices"], device.Name)
	}
	for _, name := range kernelSettings {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		all["settings"] = append(all["settings"], fmt.Sprintf("%s %s %v", name, value, err))
	}
	for _, name := range directories {
		if _, err := os.Stat(name); err == nil {
			all["directories"] = append(all["directories"], name)
		}
	}
	for _, name := range []string{"/proc/self/net/route", "/proc/self/net/ip_tables_names"} {
		text, _ := os.ReadFile(name)
		all["network"] = slices.AppendSeq(all["network"], strings.Lines(string(text)))
	}
	if dir == "" {
		return all
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) {
			all["mounts"] = append(all["mounts"], line)
		}
	}
	for _, p := range processesOf(t, dir) {
		all["processes"] = append(all["processes"], p.program)
	}
	for _, parent := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		cgroups, err := filepath.Glob(filepath.Join(parent, cgroupOf(dir)))
		if err != nil {
			t.Fatal(err)
		}
		all["cgroups"] = slices.Concat(all["cgroups"], cgroups)
	}
	return all
}

// nothingLeft waits until the machine has no mounts, processes or other items that it did not have
// before the sandbox. The kernel cleans up after killed processes in the background. Items that
// have disappeared are ignored, because they belonged to other programs, such as a network device
// that was about to be removed.
func nothingLeft(t *testing.T, before map[string][]string, dir string) {
	t.Helper()
	framework.Eventually(t, "the machine is as before", func() error {
		var failed error
		for what, list := range machine(t, dir) {
			for _, item := range list {
				if !slices.Contains(before[what], item) {
					failed = errors.Join(failed, fmt.Errorf("%s: %s", what, item))
				}
			}
		}
		return failed
	})
}

// TestKilled checks that killing a sandbox terminates its node's processes, and that the next
// sandbox command removes everything else.
func TestKilled(t *testing.T) {
	before := machine(t, "")
	cluster := framework.StartReal(t)
	var killed bool
	for _, p := range processesOf(t, cluster.Dir) {
		if p.program == "sandbox" {
			p.kill(t)
			killed = true
		}
	}
	if !killed {
		t.Fatal("the sandbox was not found")
	}
	framework.Eventually(t, "its processes are gone", func() error {
		if left := processesOf(t, cluster.Dir); len(left) > 0 {
			return fmt.Errorf("%v run", left)
		}
		return nil
	})
	cluster.Sandbox(t, "down")
	nothingLeft(t, before, cluster.Dir)
}
