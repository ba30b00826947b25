// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import "fmt"

// Planned is a fault with a score: the higher, the more likely it is to find a problem.
type Planned struct {
	Fault
	Score int
}

// Subject returns the request, the time or the resource that a fault is about.
func (f *Fault) Subject() string {
	switch {
	case f.Call != nil:
		return f.Call.String()
	case f.AsOf != "":
		return f.AsOf
	}
	return f.Resource
}

// History remembers the faults that were played and that found problems, to choose the next
// fault.
type History struct {
	// played counts the played faults with each trait.
	played map[string]int
	// found are the places at which a problem was found.
	found map[string]bool
}

// NewHistory returns a history without played faults.
func NewHistory() *History { return &History{played: map[string]int{}, found: map[string]bool{}} }

// traits returns the traits of a fault, each with the amount by which an earlier fault with the
// same trait lowers its score.
func (f *Fault) traits() map[string]int {
	family := f.Entry().Family
	return map[string]int{
		family:                                  1,
		family + " " + f.Subject():              4,
		fmt.Sprintf("%s in %d", family, f.Step): 2,
	}
}

// places returns keys for the place of a fault. Further faults at a place with a problem mostly
// show the same problem again.
func (f *Fault) places() []string {
	return []string{fmt.Sprintf("%s in %d", f.Entry().Family, f.Step), fmt.Sprintf("%s in %d", f.Subject(), f.Step)}
}

// NotePlayed records that a fault was played.
func (h *History) NotePlayed(f *Fault) {
	for trait := range f.traits() {
		h.played[trait]++
	}
}

// NoteFound records that a fault found a problem.
func (h *History) NoteFound(f *Fault) {
	for _, place := range f.places() {
		h.found[place] = true
	}
}

// value returns the score of a fault, lowered for each similar fault that was played: a variety
// of faults finds more than many similar faults.
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

// Next returns the index of the fault with the highest value, the first of equals; -1 for an
// empty list.
func (h *History) Next(left []Planned) int {
	best, most := -1, 0
	for i := range left {
		if value := h.value(&left[i]); best < 0 || value > most {
			best, most = i, value
		}
	}
	return best
}

// Faults is a list of faults with their scores, from which Variety chooses.
type Faults []Planned

// Variety chooses faults that differ from its earlier choices.
type Variety struct{ history *History }

// NewVariety returns a Variety without earlier choices.
func NewVariety() *Variety { return &Variety{NewHistory()} }

// Choose returns the faults with the highest values, at most that many.
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
