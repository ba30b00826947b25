// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"strings"
	"testing"
)

// LoadAverage returns the load average of the last minute, for the report of a measurement.
func LoadAverage(t testing.TB) string {
	t.Helper()
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	average, _, _ := strings.Cut(string(load), " ")
	return average
}
