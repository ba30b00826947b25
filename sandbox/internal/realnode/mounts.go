// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

// kernelSettings holds the values that a kubelet requires of kernel settings, keyed by the
// setting's path below /proc/sys. These settings apply to the entire machine.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// fixed lists the directories that a real node replaces with its own, because its programs write to
// them and the paths are hard-coded in the programs.
var fixed = []string{"/run", "/var/run", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers"}

// mount replaces the host directories to which the node would write with the node's own
// directories. It must be called in the node's mount namespace.
func (s Spec) mount() error {
	// The node's mounts must not be visible on the host, but the node's containers may share mounts
	// with each other.
	for _, flags := range []uintptr{unix.MS_REC | unix.MS_PRIVATE, unix.MS_REC | unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", flags, ""); err != nil {
			return fmt.Errorf("a mount namespace: %w", err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range fixed {
		if target, err := filepath.EvalSymlinks(dir); dir == "/var/run" && err == nil && target != dir {
			continue // /var/run is a link to /run, which is replaced, too.
		}
		if err := incluster.MakePrivate(dir); err != nil {
			return fmt.Errorf("a %s of the node: %w", dir, err)
		}
	}
	return s.pretendKernelSettings()
}

// pretendKernelSettings mounts files over kernel settings. The kubelet then reads the values that
// it requires, and does not change the machine's settings.
func (s Spec) pretendKernelSettings() error {
	for name, value := range kernelSettings {
		setting := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(setting); err != nil {
			continue
		}
		file := s.state(strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		if err := unix.Mount(file, setting, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover %s: %w", setting, err)
		}
	}
	return nil
}
