// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import "fmt"

// Planned is a fault with a score. The higher the score, the more likely the fault is to reveal a
// problem.
type Planned struct {
	Fault
	Score int
}

// Subject describes the target of the fault: the request that it hits, the time to which its lists
// go back, or the resource whose events it hits.
func (f *Fault) Subject() string {
	switch {
	case f.Call != nil:
		return f.Call.String()
	case f.AsOf != "":
		return f.AsOf
	}
	return f.Resource
}

// History records the injected faults, and the faults that revealed problems, to select the next
// fault.
type History struct {
	// played maps each trait of faults (see Fault.traits), such as a family, to the number of
	// injected faults with this trait.
	played map[string]int
	// found is the set of places (see Fault.places) at which a fault has revealed a problem.
	found map[string]bool
}

// NewHistory returns an empty History.
func NewHistory() *History { return &History{played: map[string]int{}, found: map[string]bool{}} }

// traits maps each trait of the fault, such as its family, to a penalty. Each earlier fault with
// the same trait lowers this fault's score by the penalty. At most 12 earlier faults count.
func (f *Fault) traits() map[string]int {
	family := f.Entry().Family
	return map[string]int{
		family:                                  1,
		family + " " + f.Subject():              4,
		fmt.Sprintf("%s in %d", family, f.Step): 2,
	}
}

// places returns two keys: the fault's family with its step, and the fault's target with its step.
// Two faults with a common key usually reveal the same problem.
func (f *Fault) places() []string {
	return []string{fmt.Sprintf("%s in %d", f.Entry().Family, f.Step), fmt.Sprintf("%s in %d", f.Subject(), f.Step)}
}

// NotePlayed records that a fault was injected.
func (h *History) NotePlayed(f *Fault) {
	for trait := range f.traits() {
		h.played[trait]++
	}
}

// NoteFound records that a fault revealed a problem.
func (h *History) NoteFound(f *Fault) {
	for _, place := range f.places() {
		h.found[place] = true
	}
}

// value returns a planned fault's score, minus a penalty for each similar fault in the history. The
// penalty favors a variety of faults, which reveals more problems than many similar faults.
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

// Next returns the index of the fault in `left` with the highest score after the penalties for
// similar faults in the history. The first fault wins a tie. Next returns -1 if `left` is empty.
func (h *History) Next(left []Planned) int {
	best, most := -1, 0
	for i := range left {
		if value := h.value(&left[i]); best < 0 || value > most {
			best, most = i, value
		}
	}
	return best
}

// Faults lists faults with their scores, from which Variety selects.
type Faults []Planned

// Variety selects faults that differ from its earlier selections.
type Variety struct{ history *History }

// NewVariety returns a Variety that has not selected any faults yet.
func NewVariety() *Variety { return &Variety{NewHistory()} }

// Choose selects at most `most` faults. It prefers high scores and faults that differ from earlier
// selections.
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
