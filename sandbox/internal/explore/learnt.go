// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Learnt is kept with a finding to shorten its replay: how the steps of the baseline runs ended. A
// replay plays its baseline runs all the same, as each installation has other certificates and
// ports. Learnt only tells when a step is over before nothing has happened for --quiet: by the rule
// that ends the steps of runs with a fault. No verdict depends on it.
type Learnt struct {
	// Of is a hash of everything that the baseline runs depend on.
	Of string `json:"of"`
	// Watches are the resources that the operator watches right after its start.
	Watches []string     `json:"watches,omitempty"`
	Steps   []LearntStep `json:"steps"`
}

// LearntStep is how a step ended in the baseline runs.
type LearntStep struct {
	// State is the digest of the state at the end; empty if the two runs came to different states.
	State string `json:"state,omitempty"`
	// Last and Lasts are the last kind of write, and the number of such writes; 0: there is none.
	Last  observe.Call `json:"last,omitzero"`
	Lasts int          `json:"lasts,omitempty"`
	// Quiet is the quiet time that runs with a fault need in this step, in seconds.
	Quiet float64 `json:"quiet"`
}

// subject is the tested operator with its workload, and makes findings about them.
type subject struct {
	command  []string
	workload *workload.Workload
	// quiet is the quiet time of baseline runs.
	quiet time.Duration
}

// learntFrom returns how the steps of a workload ended in the baseline runs; nil if what these depend
// on cannot be read.
func (s subject) learntFrom(w *workload.Workload, b *baseline.Baseline) *Learnt {
	of := s.dependsOn(w)
	if b == nil || of == "" {
		return nil
	}
	l := &Learnt{Of: of, Watches: b.AtStart}
	for i := range b.Steps[:min(len(w.Steps)+1, len(b.Steps))] {
		step := &b.Steps[i]
		l.Steps = append(l.Steps, LearntStep{State: step.Digest, Last: step.Last, Lasts: step.Lasts, Quiet: step.Quiet.Seconds()})
	}
	return l
}

// known returns what a finding keeps of its baseline runs if these were runs of the same subject;
// otherwise nil.
func (s subject) known(l *Learnt) *Learnt {
	if l == nil || l.Of == "" || l.Of != s.dependsOn(s.workload) {
		return nil
	}
	return l
}

// dependsOn returns a hash of what the baseline runs depend on: the operator, the manifests that are
// installed, the workload, this program and --quiet. It is empty if one cannot be read.
func (s subject) dependsOn(w *workload.Workload) string {
	about, err := results.NewAbout(s.command, nil, w.Install, w, s.quiet)
	if err != nil {
		return ""
	}
	text, err := json.Marshal(about)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// step returns how a step ended; nil if that is not known, and for the last step, in which changes of
// all earlier steps may still come to light.
func (l *Learnt) step(i int) *LearntStep {
	if l == nil || i >= len(l.Steps)-1 || l.Steps[i].State == "" {
		return nil
	}
	return &l.Steps[i]
}

// over reports whether the step is over in a run that is quiet for some time, and in which the last
// kind of write came that often.
func (s *LearntStep) over(quiet time.Duration, lasts int, state func() string) bool {
	return quiet.Seconds() >= s.Quiet && lasts >= s.Lasts && state() == s.State
}

// recognized reports whether a step of a baseline run has ended as it did before.
func (r *run) recognized(step int, quiet time.Duration) bool {
	known := r.learnt.step(step)
	if known == nil || r.recorder.Unfinished() || !containsAll(r.settler.Watches(), r.learnt.Watches) {
		return false
	}
	return known.over(quiet, r.settler.Sent(known.Last), r.digest)
}

// digest returns the digest of the present state.
func (r *run) digest() string {
	return observe.Names{Unjudged: r.Workload.Unjudged}.Digest(r.recorder.Objects(), r.log.LockKeys())
}

// containsAll reports whether a list has all items of another.
func containsAll(all, items []string) bool {
	return !slices.ContainsFunc(items, func(item string) bool { return !slices.Contains(all, item) })
}
