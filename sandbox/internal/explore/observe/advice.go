// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

const (
	// mostAdvised is the maximum number of fields that Advice suggests to exclude from comparisons.
	// If more fields change, the cluster is probably still busy, and Advice suggests nothing.
	mostAdvised = 3
	// leastQuiet is the shortest quiet time that Advice recommends for --quiet.
	leastQuiet = 500 * time.Millisecond
)

// Advice returns lines that explain to users how a cluster can count as quiet although some fields
// change constantly. Users can exclude these fields from comparisons, or choose a shorter --quiet.
// Advice considers only changes after `since`. `quiet` is the current --quiet, and `unjudge`
// returns the line that excludes a field.
func Advice(versions []Version, since time.Time, quiet time.Duration, unjudge func(resource, path string) string) []string {
	var fields []string
	var times []time.Time
	for i := range versions {
		v := &versions[i]
		if v.Initial || v.Habit || v.Heartbeat() || !v.Time.After(since) {
			continue
		}
		if v.Type != watch.Modified || v.Old == nil {
			return nil // Excluding fields or a shorter --quiet does not help if objects are created or deleted.
		}
		times = append(times, v.Time)
		for _, path := range v.changedPaths() {
			if text := unjudge(v.Resource, path); !slices.Contains(fields, text) {
				fields = append(fields, text)
			}
		}
	}
	if len(times) < 2 || len(fields) > mostAdvised {
		return nil
	}
	var lines []string
	if len(fields) > 0 {
		lines = append(lines, "if that may be so, no run need be judged by what changes; add:")
		for _, field := range fields {
			lines = append(lines, "  "+field)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	between := times[1].Sub(times[0])
	for i := 2; i < len(times); i++ {
		between = min(between, times[i].Sub(times[i-1]))
	}
	if shorter := (between * 3 / 4).Truncate(100 * time.Millisecond); shorter >= leastQuiet && shorter < quiet {
		lines = append(lines, fmt.Sprintf("or, as nothing happens for at least %s in between: --quiet %s", between.Round(100*time.Millisecond), shorter))
	}
	return lines
}

// UnjudgedLine returns the line of a workload file that excludes a field from the verdict.
func UnjudgedLine(resource, path string) string {
	return fmt.Sprintf("unjudged: [{resource: %s, path: '%s'}]", resource, path)
}
