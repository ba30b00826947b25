// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
)

// control checks a finding that is confirmed, and that reports numbers of created or deleted objects.
// Two baseline runs may have the same numbers by chance, for example of an operator that deletes an
// object too many now and then. control therefore plays the workload once more without a fault, and
// removes from the finding, and from the baseline, the numbers that differ from the baseline in that
// run. It reports whether any problem is left. lane is the name of the sandbox to play in.
func (q *queue) control(lane string, found *Finding) bool {
	reported := func(p judge.Problem) bool { return p.Oracle == judge.OtherCounts }
	if found.Repeated == 0 || !slices.ContainsFunc(found.Problems, reported) || q.over.Err() != nil {
		return true
	}
	o, err := q.play(q.over, lane, nil, setting{new: true})
	if err != nil || q.over.Err() != nil || len(o.Steps) < len(q.base.Steps) {
		return true // The finding stands: nothing is known against it.
	}
	chance := q.base.LearnCounts(baseline.CountOf(q.base.Names, o.Versions, q.base.Locks, q.base.MakesPods, false))
	q.mu.Lock() // Other lanes print their progress.
	for _, key := range chance {
		fmt.Fprintf(q.plan.Progress, "Not judged from now on, as it %s: %s, how often it is created and deleted\n", baseline.DiffersUndisturbed, key)
	}
	q.mu.Unlock()
	for i := range found.Problems {
		if reported(found.Problems[i]) {
			found.Problems[i].Lines = slices.DeleteFunc(found.Problems[i].Lines, func(line string) bool {
				key, _, _ := strings.Cut(line, ": ")
				return q.base.IsUncounted(key)
			})
		}
	}
	found.Problems = slices.DeleteFunc(found.Problems, func(p judge.Problem) bool { return len(p.Lines) == 0 })
	return len(found.Problems) > 0
}
