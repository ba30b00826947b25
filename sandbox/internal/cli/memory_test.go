// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestAvailableMemory checks that the available memory is the minimum of the machine's available
// memory and the free memory under each limit on the path to this process's cgroup.
func TestAvailableMemory(t *testing.T) {
	const gib = 1 << 30
	size := func(n float64) string { return strconv.Itoa(int(n*gib)) + "\n" }
	v1 := func(group string, limit, used, cache float64) map[string]string {
		return map[string]string{
			"sys/memory/" + group + "memory.limit_in_bytes": size(limit),
			"sys/memory/" + group + "memory.usage_in_bytes": size(used),
			"sys/memory/" + group + "memory.stat":           "inactive_file 5\ntotal_inactive_file " + size(cache),
		}
	}
	v2 := func(group, limit string, used float64) map[string]string {
		return map[string]string{
			"sys/" + group + "memory.max":     limit,
			"sys/" + group + "memory.current": size(used),
			"sys/" + group + "memory.stat":    "anon 7\ninactive_file " + size(0.5) + "file 7\n",
		}
	}
	const infinite = 8 << 30 // In GiB; version 1 cgroups report such a value if there is no limit.
	for _, tc := range []struct {
		name   string
		cgroup string
		files  []map[string]string
		want   float64
	}{
		{name: "no cgroups", want: 16},
		{name: "version 1, without a limit", cgroup: "4:memory:/job\n0::/\n", files: []map[string]string{v1("", infinite, 3, 0), v1("job/", infinite, 2, 0)}, want: 16},
		{name: "version 1", cgroup: "5:cpu:/other\n4:memory:/job\n0::/\n", files: []map[string]string{v1("job/", 4, 2.5, 0.5), v1("other/", 1, 1, 0)}, want: 2},
		{name: "version 1, together with another controller, in a group that is limited", cgroup: "4:hugetlb,memory:/job/step\n", files: []map[string]string{v1("job/", 3, 1, 0), v1("job/step/", 8, 1, 0)}, want: 2},
		{name: "version 1, in a container that sees the path on its machine", cgroup: "4:memory:/kubepods/pod/abc\n", files: []map[string]string{v1("", 3, 1, 0)}, want: 2},
		{name: "version 2, without a limit", cgroup: "0::/job\n", files: []map[string]string{v2("job/", "max\n", 3)}, want: 16},
		{name: "version 2", cgroup: "0::/job\n", files: []map[string]string{v2("job/", size(4), 1.5)}, want: 3},
		{name: "version 2, in a group that is limited", cgroup: "0::/slice/job\n", files: []map[string]string{v2("slice/", size(2), 1), v2("slice/job/", "max\n", 1)}, want: 1.5},
		{name: "version 2, at the root of a container", cgroup: "0::/\n", files: []map[string]string{v2("", size(4), 1.5)}, want: 3},
		{name: "version 2, outside of what is mounted", cgroup: "0::/../../other\n", files: []map[string]string{v2("", size(4), 1.5)}, want: 3},
		{name: "version 2, slowed down before its limit", cgroup: "0::/\n", files: []map[string]string{v2("", size(9), 1.5), {"sys/memory.high": size(4)}}, want: 3},
		{name: "more in use than permitted", cgroup: "0::/\n", files: []map[string]string{v2("", size(1), 2)}, want: 0},
		{name: "what is used is unknown", cgroup: "0::/\n", files: []map[string]string{{"sys/memory.max": size(4)}}, want: 4},
		{name: "a larger limit than the machine", cgroup: "0::/\n", files: []map[string]string{v2("", size(64), 1)}, want: 16},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"proc/meminfo": "MemTotal: 33554432 kB\nMemAvailable: " + strconv.Itoa(16<<20) + " kB\n", "proc/7/cgroup": tc.cgroup}
			for _, more := range tc.files {
				maps.Copy(files, more)
			}
			for name, text := range files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("7", filepath.Join(dir, "proc", "self")); err != nil {
				t.Fatal(err)
			}
			m := memory{proc: filepath.Join(dir, "proc"), cgroup: filepath.Join(dir, "sys")}
			if got := float64(m.available()) / gib; got != tc.want {
				t.Errorf("%g GiB are available, want %g", got, tc.want)
			}
		})
	}
}

// TestUnknownMemory checks that the memory counts as unlimited on a machine without /proc.
func TestUnknownMemory(t *testing.T) {
	if got := (memory{proc: filepath.Join(t.TempDir(), "none")}).available(); got != unlimited {
		t.Errorf("%d bytes are available", got)
	}
}
