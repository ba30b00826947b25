// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// programs lists the programs that a real node runs.
var programs = []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "ptp", "host-local", "pause"}

// capabilities lists the Linux capabilities that a real node needs.
var capabilities = []struct {
	bit  int
	name string
}{
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_MKNOD, "CAP_MKNOD"}, {unix.CAP_SYS_CHROOT, "CAP_SYS_CHROOT"},
}

// covered lists the system directories below which the data directory of a sandbox with real nodes
// must not be. For example, a real node has its own /run, so that it could not access a data
// directory there.
var covered = append([]string{"/proc", "/sys", "/dev"}, fixed...)

// Programs returns the directory of the programs that a node runs: the directory "node" next to
// this program.
func Programs() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), "node"), nil
}

// Check returns an error if this machine does not meet the requirements for real nodes of the
// sandbox in dir.
func Check(dir string) error {
	if os.Geteuid() != 0 {
		return errors.New("real nodes need root")
	}
	found, err := Programs()
	if err != nil {
		return err
	}
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(found, name)); err != nil {
			return fmt.Errorf("real nodes need %s in %s: build it with 'make build-node'", name, found)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if missing := missingCapabilities(string(status)); len(missing) > 0 {
		return fmt.Errorf("real nodes need %s, which this process does not have", strings.Join(missing, " and "))
	}
	for _, c := range covered {
		if dir == c || strings.HasPrefix(dir, c+"/") {
			return fmt.Errorf("real nodes have a %s of their own, so the data directory cannot be in it: give another --data-dir", c)
		}
	}
	if _, err := os.Stat("/dev/kmsg"); err != nil {
		return errors.New("real nodes need /dev/kmsg, where the kernel reports processes that it has killed")
	}
	return checkCgroups()
}

// missingCapabilities returns the capabilities that a real node needs and a process lacks, given
// the content of the process's file /proc/PID/status.
func missingCapabilities(status string) []string {
	var effective uint64
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			_, _ = fmt.Sscanf(strings.TrimSpace(value), "%x", &effective)
		}
	}
	var missing []string
	for _, c := range capabilities {
		if effective&(1<<c.bit) == 0 {
			missing = append(missing, c.name)
		}
	}
	return missing
}

// mayRaise reports whether a process has the capability CAP_SYS_RESOURCE, without which it cannot
// lower OOM scores. The parameter "status" is the content of the process's file /proc/PID/status.
func mayRaise(status string) bool {
	for line := range strings.Lines(status) {
		var effective uint64
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			_, _ = fmt.Sscanf(strings.TrimSpace(value), "%x", &effective)
			return effective&(1<<unix.CAP_SYS_RESOURCE) != 0
		}
	}
	return false
}
