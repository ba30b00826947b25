// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// kept is what was learnt about the sample, beside findings: so that a replay need not learn it.
type kept struct {
	Before, State         explore.State
	Masked                []state.Masked
	Quiet, Took           time.Duration
	Busy                  float64
	Observed, Fresh, Idle bool
	Watched               []string
	Reports               string
	Habits                map[explore.Habit]bool
	Managers              map[string]bool
}

// keep writes what was learnt to the directory of results.
func (f *Fuzzer) keep(about *results.About) error {
	b := f.base
	return about.Keep(f.Explorer.Dir, func() (any, error) {
		return kept{b.before, b.state, b.mask.All(), b.quiet, b.took, b.busy, b.observed, b.fresh, b.idle, b.watched, b.reports, b.habits, b.managers}, nil
	})
}

// recall takes what was learnt before from a directory, and reports whether there is that of this
// operator, this sample and these flags.
func (f *Fuzzer) recall(about *results.About, dir string) (bool, error) {
	var k kept
	if is, err := about.Recall(dir, &k); err != nil || !is {
		return false, err
	}
	f.base = &baseline{
		before: k.Before, state: k.State, mask: NewMask(f.Ignore), quiet: k.Quiet, took: k.Took, busy: k.Busy, observed: k.Observed, fresh: k.Fresh, idle: k.Idle,
		watched: k.Watched, reports: k.Reports, habits: k.Habits, managers: k.Managers,
	}
	f.base.mask.Add(k.Masked...)
	return true, nil
}

// about describes what is learnt about the sample. It must be asked before anything is installed.
func (f *Fuzzer) about() (results.About, error) {
	e := f.Explorer
	return results.NewAbout(e.Command, nil, e.Workload.Install, []any{object(f.Sample), f.Others, e.Workload.Nodes},
		[]any{e.Judging(), append([]string{}, f.Ignore...)})
}
