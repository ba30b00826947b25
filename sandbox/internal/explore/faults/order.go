// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import "fmt"

// Planned is a fault with how promising it is.
type Planned struct {
	Fault
	Score int
}

// Subject is the request, the moment or the resource that a fault hits.
func (f *Fault) Subject() string {
	switch {
	case f.Call != nil:
		return f.Call.String()
	case f.AsOf != "":
		return f.AsOf
	}
	return f.Resource
}

// History is the history of played faults, from which the next follows.
type History struct {
	// played counts the traits of the played faults.
	played map[string]int
	// found are places at which something was found.
	found map[string]bool
}

// NewHistory returns a history in which no fault has been played.
func NewHistory() *History { return &History{played: map[string]int{}, found: map[string]bool{}} }

// traits are the traits of a fault, and how much less promising it is for each
// that was played and has it.
func (f *Fault) traits() map[string]int {
	family := f.Entry().Family
	return map[string]int{
		family:                                  1,
		family + " " + f.Subject():              4,
		fmt.Sprintf("%s in %d", family, f.Step): 2,
	}
}

// places are where a fault happens. Where one was not survived, others most often show the
// same mistake.
func (f *Fault) places() []string {
	return []string{fmt.Sprintf("%s in %d", f.Entry().Family, f.Step), fmt.Sprintf("%s in %d", f.Subject(), f.Step)}
}

// NotePlayed counts a fault that was played.
func (h *History) NotePlayed(f *Fault) {
	for trait := range f.traits() {
		h.played[trait]++
	}
}

// NoteFound notes that a fault had a finding.
func (h *History) NoteFound(f *Fault) {
	for _, place := range f.places() {
		h.found[place] = true
	}
}

// value is how promising a fault is after what was played. A variety of faults finds more
// than many of the same kind.
func (h *History) value(p *Planned) int {
	value := p.Score
	for trait, less := range p.traits() {
		value -= less * min(h.played[trait], 12)
	}
	for _, place := range p.places() {
		if h.found[place] {
			value -= 12
		}
	}
	return value
}

// Next returns the index of the most promising of some faults, the first of equal ones; -1
// if there is none.
func (h *History) Next(left []Planned) int {
	best, most := -1, 0
	for i := range left {
		if value := h.value(&left[i]); best < 0 || value > most {
			best, most = i, value
		}
	}
	return best
}

// Faults are the faults of some writes, with how promising each is.
type Faults []Planned

// Variety chooses faults that are unlike its earlier choices.
type Variety struct{ history *History }

// NewVariety returns a Variety without earlier choices.
func NewVariety() *Variety { return &Variety{NewHistory()} }

// Choose returns the most promising faults, at most that many.
func (v *Variety) Choose(all Faults, most int) []Fault {
	left := append(Faults(nil), all...)
	var chosen []Fault
	for len(chosen) < most && len(left) > 0 {
		i := v.history.Next(left)
		chosen = append(chosen, left[i].Fault)
		v.history.NotePlayed(&left[i].Fault)
		left = append(left[:i], left[i+1:]...)
	}
	return chosen
}
