// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "runtime"

// perSandbox is the memory of a sandbox with its operator, in bytes.
const perSandbox = 1 << 30

// sandboxes returns how many play side by side unless --jobs says so: as many for each
// processor as given, if there is memory for them and for the others, which wait.
func sandboxes(perProcessor, others int) int {
	return min(perProcessor*runtime.GOMAXPROCS(0), roomFor(available(), others))
}

// roomFor returns the number of sandboxes that fit into that many bytes, beside others: at least 1.
func roomFor(bytes uint64, others int) int {
	return max(1, int(min(bytes/perSandbox, 1000))-others)
}

// available returns how many bytes of memory programs can have that are started now.
func available() uint64 { return memory{proc: "/proc", cgroup: "/sys/fs/cgroup"}.available() }
