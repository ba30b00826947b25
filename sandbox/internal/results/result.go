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

// Result holds the completed cases of one or several directories, with their findings.
type Result[F Finding] struct {
	Played   []Played
	Findings []F
	// Planned is the number of planned cases, and Left is the number of planned cases that have not
	// been run. Missing lists the parts of a run divided by --shard that have no results, such as
	// 2/4.
	Planned, Left int
	Missing       []string
	Took          time.Duration
	// Scope describes the objects and fields by which cases were judged. It is nil if the run ended
	// before these were known.
	Scope *Scope
	// Learnt summarizes the baseline runs in a line.
	Learnt string
	// Remarks lists additional report lines, for example about cases that cannot be run.
	Remarks []string
}

// Group is a group of findings that probably have the same cause.
type Group[F Finding] struct {
	Finding F
	// Also lists the group's other findings.
	Also []F
}

// Groups returns groups of confirmed findings and groups of unconfirmed findings, both sorted by
// ascending rank. An unconfirmed finding joins the confirmed group of its kind, if there is one.
func (r *Result[F]) Groups() (confirmed, once []Group[F]) {
	sorted := slices.SortedStableFunc(slices.Values(r.Findings), func(a, b F) int {
		return cmp.Or(slices.Compare(a.Rank(), b.Rank()), cmp.Compare(a.Where(), b.Where()))
	})
	slices.SortStableFunc(sorted, func(a, b F) int {
		switch {
		case a.Confirmed() == b.Confirmed():
			return 0
		case a.Confirmed():
			return -1
		}
		return 1
	})
	for _, f := range sorted {
		into := &once
		if f.Confirmed() || slices.ContainsFunc(confirmed, func(g Group[F]) bool { return g.Finding.Kind() == f.Kind() }) {
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

// Confirmed returns the number of groups with a confirmed finding.
func (r *Result[F]) Confirmed() int {
	confirmed, _ := r.Groups()
	return len(confirmed)
}

// Failed returns the number of cases that could not be judged.
func (r *Result[F]) Failed() int {
	failed := 0
	for _, p := range r.Played {
		if p.Error != "" {
			failed++
		}
	}
	return failed
}

// mostUnjudged is the divisor of the tolerated share of cases without a verdict. If more than
// 1/mostUnjudged of the completed cases have no verdict, the absence of findings proves nothing.
const mostUnjudged = 10

// done returns the number of completed cases that need not be repeated.
func (r *Result[F]) done() int {
	done := 0
	for i := range r.Played {
		if r.Played[i].Done() {
			done++
		}
	}
	return done
}

// Judged returns an error if the result proves little: no case was completed, too many cases could
// not be judged, no fault or edit took effect, or a part of a run divided by --shard is missing.
func (r *Result[F]) Judged() error {
	switch failed := r.Failed(); {
	case len(r.Played) == 0:
		return errors.New("nothing was played: --for leaves no time for it, or it was interrupted")
	case failed == len(r.Played):
		return fmt.Errorf("none of the %d that were played could be judged: %s", failed, r.whyNot())
	case mostUnjudged*failed > len(r.Played):
		return fmt.Errorf("%d of the %d that were played could not be judged, more than a tenth, such as: %s. Started again, it plays them again", failed, len(r.Played), r.whyNot())
	case r.Came(NotReached) == len(r.Played)-failed:
		return fmt.Errorf("none of the %d that were played was reached: the operator does not do again what they are about", len(r.Played)-failed)
	case len(r.Missing) > 0:
		return fmt.Errorf("of the parts %s there is nothing: give their directories, too", strings.Join(r.Missing, ", "))
	}
	return nil
}

// whyNot returns the first line of the error of the first case that could not be judged.
func (r *Result[F]) whyNot() string {
	for _, p := range r.Played {
		if p.Error != "" {
			why, _, _ := strings.Cut(p.Error, "\n")
			return why
		}
	}
	return ""
}

// Doubt returns warnings if most cases could not be judged, or if parts of a run divided by --shard
// are missing.
func (r *Result[F]) Doubt() []string {
	var lines []string
	if 2*r.Failed() > len(r.Played) {
		lines = append(lines, "Most could not be judged, such as: "+r.whyNot()+". Is the machine too slow for that many --jobs, or does something differ in every run?")
	}
	if len(r.Missing) > 0 {
		lines = append(lines, "Parts of which nothing is here: "+strings.Join(r.Missing, ", ")+".")
	}
	return lines
}

// Came returns the number of completed cases with the given outcome.
func (r *Result[F]) Came(outcome string) int {
	came := 0
	for _, p := range r.Played {
		if p.Outcome == outcome {
			came++
		}
	}
	return came
}

// note adds a case's record, or replaces its earlier record.
func (r *Result[F]) note(p Played) {
	if known := r.playedAs(p.ID); known != nil {
		*known = p
		return
	}
	r.Played = append(r.Played, p)
}

// playedAs returns the record of the case with the given ID, or nil.
func (r *Result[F]) playedAs(id string) *Played {
	if i := slices.IndexFunc(r.Played, func(p Played) bool { return p.ID == id }); i >= 0 {
		return &r.Played[i]
	}
	return nil
}

// foundAs returns the index of the finding of the case with the given ID, or -1 if there is none.
func (r *Result[F]) foundAs(id string) int {
	return slices.IndexFunc(r.Findings, func(f F) bool { return f.Case() == id })
}

// add merges the result of another directory into `r`. For a case in both directories, it keeps the
// record with the higher weight (see Played.weight).
func (r *Result[F]) add(other *Result[F]) {
	for _, p := range other.Played {
		if known := r.playedAs(p.ID); known == nil {
			r.Played = append(r.Played, p)
		} else if p.weight() > known.weight() {
			*known = p
		}
	}
	for _, f := range other.Findings {
		if i := r.foundAs(f.Case()); i < 0 {
			r.Findings = append(r.Findings, f)
		} else if f.Confirmed() && !r.Findings[i].Confirmed() {
			r.Findings[i] = f
		}
	}
}

// ids returns the set of completed case IDs.
func (r *Result[F]) ids() map[string]bool {
	ids := map[string]bool{}
	for _, p := range r.Played {
		ids[p.ID] = true
	}
	return ids
}

// seconds returns the total duration of all completed cases.
func (r *Result[F]) seconds() time.Duration {
	var sum time.Duration
	for _, p := range r.Played {
		sum += time.Duration(p.Seconds * float64(time.Second))
	}
	return sum
}
