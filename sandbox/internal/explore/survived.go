// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
)

// timelinesDir is the directory, below that of the results, with the timelines of survived faults.
const timelinesDir = "timelines"

// saveTimeline writes the timeline of a run in which the operator survived a fault to a file with the
// ID of the fault.
func (q *queue) saveTimeline(f *faults.Fault, o *judge.Outcome) error {
	dir := filepath.Join(q.explorer.Testbeds.Dir, timelinesDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nsurvived: %s\n\n", f.Name(), f.Describe(q.explorer.Workload))
	for _, m := range judge.Timeline(o, q.base.LockKeys()) {
		fmt.Fprintln(&text, m)
	}
	return os.WriteFile(filepath.Join(dir, f.ID()+".txt"), []byte(text.String()), 0o600)
}
