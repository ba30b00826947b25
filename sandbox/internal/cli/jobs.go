// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "runtime"

// perSandbox is the estimated memory of a sandbox with its operator, in bytes.
const perSandbox = 1 << 30

// sandboxes returns the default number of jobs, each of which needs a sandbox: perProcessor for
// each processor, or fewer if there is too little memory. The parameter "others" is the number of
// additional sandboxes, which are mostly idle.
func sandboxes(perProcessor, others int) int {
	return min(perProcessor*runtime.GOMAXPROCS(0), roomFor(available(), others))
}

// roomFor returns the number of sandboxes that fit into the given number of bytes of memory, in
// addition to the given number of other sandboxes. It returns at least 1.
func roomFor(bytes uint64, others int) int {
	return max(1, int(min(bytes/perSandbox, 1000))-others)
}

// available returns the memory available to new programs, in bytes.
func available() uint64 { return memory{proc: "/proc", cgroup: "/sys/fs/cgroup"}.available() }
