// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Result is what came of playing.
type Result[F Finding] struct {
	Played   []Played
	Findings []F
	// Planned is how many cases there are, Left how many of them were not played here.
	Planned, Left int
	Took          time.Duration
	// Learnt is what was learnt before.
	Learnt string
}

// Group is what was found of what is probably one mistake.
type Group[F Finding] struct {
	Finding F
	// Also are other cases that show it.
	Also []F
}

// Groups sorts the findings into groups, those that are confirmed and those that were found
// only once: in each, what tells most comes first.
func (r *Result[F]) Groups() (confirmed, once []Group[F]) {
	sorted := slices.SortedStableFunc(slices.Values(r.Findings), func(a, b F) int {
		return cmp.Or(slices.Compare(a.Rank(), b.Rank()), cmp.Compare(a.Where(), b.Where()))
	})
	for _, f := range sorted {
		into := &once
		if f.Confirmed() {
			into = &confirmed
		}
		if i := slices.IndexFunc(*into, func(g Group[F]) bool { return g.Finding.Kind() == f.Kind() }); i >= 0 {
			(*into)[i].Also = append((*into)[i].Also, f)
			continue
		}
		*into = append(*into, Group[F]{Finding: f})
	}
	return confirmed, once
}

// Confirmed returns how many different mistakes were found for certain.
func (r *Result[F]) Confirmed() int {
	confirmed, _ := r.Groups()
	return len(confirmed)
}

// Failed returns how many cases could not be judged.
func (r *Result[F]) Failed() int {
	failed := 0
	for _, p := range r.Played {
		if p.Error != "" {
			failed++
		}
	}
	return failed
}

// Judged returns an error if nothing is known: no case was played, or none could be judged.
func (r *Result[F]) Judged() error {
	switch failed := r.Failed(); {
	case len(r.Played) == 0:
		return errors.New("nothing was played: --for leaves no time for it, or it was interrupted")
	case failed == len(r.Played):
		return fmt.Errorf("none of the %d that were played could be judged: %s", failed, r.whyNot())
	}
	return nil
}

// whyNot says why the first case that could not be judged could not.
func (r *Result[F]) whyNot() string {
	for _, p := range r.Played {
		if p.Error != "" {
			why, _, _ := strings.Cut(p.Error, "\n")
			return why
		}
	}
	return ""
}

// Doubt is a line for a result of which most could not be judged, empty otherwise.
func (r *Result[F]) Doubt() string {
	if 2*r.Failed() <= len(r.Played) {
		return ""
	}
	return "Most could not be judged, such as: " + r.whyNot() + ". Is the machine too slow for that many --jobs, or does something differ in every run?"
}

// Came returns with how many cases an outcome came.
func (r *Result[F]) Came(outcome string) int {
	came := 0
	for _, p := range r.Played {
		if p.Outcome == outcome {
			came++
		}
	}
	return came
}
