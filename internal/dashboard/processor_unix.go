// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dashboard

import (
	"syscall"
	"time"
)

// processorTime returns the CPU time that this process has used. It returns 0 if the system does not
// say.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
