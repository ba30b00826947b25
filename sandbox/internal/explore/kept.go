// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// kept is what was learnt from undisturbed runs, beside findings: so that a replay plays one run.
type kept struct {
	Baseline *Baseline
	// Stable are the names that all undisturbed runs have.
	Stable map[string]bool
}

// keep writes what was learnt and is needed to judge the workload of a finding, which has the first
// steps of that from which it was learnt.
func (e *Explorer) keep(f *Finding, b *Baseline) error {
	if f.Fault == nil {
		return nil // An undisturbed run finds it.
	}
	about, err := e.about(f.Workload)
	if err != nil {
		return err
	}
	return about.Keep(e.Dir, func() (any, error) {
		if steps := len(f.Workload.Steps) + 1; steps < len(b.Steps) {
			shorter, err := learnFrom(b.runs[0].first(steps), b.runs[1].first(steps), e.Quiet, e.Workload.Unjudged, b)
			if err != nil {
				return nil, err
			}
			return kept{shorter, shorter.names.stable}, nil
		}
		return kept{b, b.names.stable}, nil
	})
}

// recall reads what was learnt when a finding was made, which is in a directory: nil if that was with
// another operator, other files or other flags.
func (e *Explorer) recall(f *Finding, dir string) (*Baseline, error) {
	if f.Fault == nil {
		return nil, nil
	}
	about, err := e.about(f.Workload)
	if err != nil {
		return nil, err
	}
	var k kept
	if is, err := about.Recall(dir, &k); err != nil || !is {
		return nil, err
	}
	k.Baseline.names = anonymizer{stable: k.Stable, unjudged: f.Workload.Unjudged}
	return k.Baseline, nil
}

// about describes what is learnt from a workload.
func (e *Explorer) about(w *Workload) (results.About, error) {
	return results.NewAbout(e.Command, nil, w.Install, w, e.Judging())
}

// first is a run as if it had only those steps.
func (o *Outcome) first(steps int) *Outcome {
	if steps >= len(o.Steps) {
		return o
	}
	end := o.Steps[steps].Began
	cut := *o
	cut.Steps, cut.Took, cut.Watches = o.Steps[:steps], end.Sub(o.Began), o.Steps[steps-1].Watches
	cut.Versions, cut.Requests, cut.Problems = nil, nil, nil
	for i := range o.Versions {
		if v := &o.Versions[i]; v.Initial || v.Time.Before(end) {
			cut.Versions = append(cut.Versions, *v)
		}
	}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.Time.Before(end) {
			cut.Requests = append(cut.Requests, *r)
		}
	}
	return &cut
}
