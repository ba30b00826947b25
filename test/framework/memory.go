// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// ResidentMiB returns a process's current and peak resident memory, in MiB.
func ResidentMiB(t testing.TB, pid int) (now, most float64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch {
		case err != nil:
		case name == "VmRSS":
			now = kib / 1024
		case name == "VmHWM":
			most = kib / 1024
		}
	}
	return now, most
}
