// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// unlimited is the number of bytes that is used if the amount of memory is unknown or unlimited.
const unlimited = 1 << 62

// memory reads memory usage from the kernel. It holds the mount points of procfs and cgroupfs,
// normally /proc and /sys/fs/cgroup.
type memory struct{ proc, cgroup string }

// available returns the memory available to new programs, in bytes: the machine's available memory,
// or less if this process's cgroups have memory limits.
func (m memory) available() uint64 {
	fs, err := procfs.NewFS(m.proc)
	if err != nil {
		return unlimited
	}
	left := uint64(unlimited)
	if info, err := fs.Meminfo(); err == nil && info.MemAvailableBytes != nil {
		left = *info.MemAvailableBytes
	}
	self, err := fs.Self()
	if err != nil {
		return left
	}
	groups, err := self.Cgroups()
	if err != nil {
		return left
	}
	for _, group := range groups {
		switch {
		case slices.Contains(group.Controllers, "memory"):
			left = min(left, leftOnPath(filepath.Join(m.cgroup, "memory"), group.Path, limitsV1))
		case len(group.Controllers) == 0:
			left = min(left, leftOnPath(m.cgroup, group.Path, limitsV2))
		}
	}
	return left
}

// limits holds the names of a cgroup's memory files, which depend on the cgroup version.
type limits struct {
	// most lists the files that contain limits of the cgroup's memory.
	most []string
	used string
	// cache is the key of the page cache's size in memory.stat. The page cache counts as used
	// memory, although the kernel reclaims it when needed.
	cache string
}

var (
	limitsV1 = limits{most: []string{"memory.limit_in_bytes"}, used: "memory.usage_in_bytes", cache: "total_inactive_file"}
	limitsV2 = limits{most: []string{"memory.max", "memory.high"}, used: "memory.current", cache: "inactive_file"}
)

// leftOnPath returns the memory in bytes that a cgroup can still use under its own limit and the
// limits of its ancestors. It skips cgroups on the path that do not exist. In a container, the path
// may be the path on the host, although only the container's cgroup is mounted.
func leftOnPath(mounted, path string, of limits) uint64 {
	left := uint64(unlimited)
	for dir := filepath.Join("/", path); ; dir = filepath.Dir(dir) {
		left = min(left, of.left(filepath.Join(mounted, dir)))
		if dir == "/" {
			return left
		}
	}
}

// left returns the memory in bytes that a cgroup can still use under its own limit.
func (l limits) left(group string) uint64 {
	most := uint64(unlimited)
	for _, name := range l.most {
		if limit, ok := numberIn(filepath.Join(group, name)); ok {
			most = min(most, limit)
		}
	}
	used, known := numberIn(filepath.Join(group, l.used))
	if most == unlimited || !known {
		return most
	}
	used -= min(used, l.forgettable(group))
	return most - min(most, used)
}

// forgettable returns the size in bytes of the inactive part of a cgroup's page cache, which the
// kernel can reclaim.
func (l limits) forgettable(group string) uint64 {
	text, err := os.ReadFile(filepath.Join(group, "memory.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == l.cache {
			if bytes, err := strconv.ParseUint(value, 10, 64); err == nil {
				return bytes
			}
		}
	}
	return 0
}

// numberIn reads a number from a file. It returns false if the file is missing or contains "max",
// which means no limit.
func numberIn(file string) (uint64, bool) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
