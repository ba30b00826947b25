// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// planned is a fault with how promising it is.
type planned struct {
	Fault
	score int
}

// subject is what a fault is injected into.
func (f *Fault) subject() string {
	switch {
	case f.Call != nil:
		return f.Call.String()
	case f.AsOf != "":
		return f.AsOf
	}
	return f.Resource
}

// history is what was played, as far as it says what to play next.
type history struct {
	// played counts what faults have in common with those that were played.
	played map[string]int
	// found are places at which something was found.
	found map[string]bool
}

func newHistory() *history { return &history{played: map[string]int{}, found: map[string]bool{}} }

// traits are what faults can have in common, and how much less promising one is for each
// that was played and has it.
func (f *Fault) traits() map[string]int {
	family := f.entry().Family
	return map[string]int{
		family:                                  1,
		family + " " + f.subject():              4,
		fmt.Sprintf("%s in %d", family, f.Step): 2,
	}
}

// places are where a fault happens. Where one was not survived, others most often show the
// same mistake.
func (f *Fault) places() []string {
	return []string{fmt.Sprintf("%s in %d", f.entry().Family, f.Step), fmt.Sprintf("%s in %d", f.subject(), f.Step)}
}

func (h *history) notePlayed(f *Fault) {
	for trait := range f.traits() {
		h.played[trait]++
	}
}

func (h *history) noteFound(f *Fault) {
	for _, place := range f.places() {
		h.found[place] = true
	}
}

// value is how promising a fault is after what was played. A variety of faults finds more
// than many of the same kind.
func (h *history) value(p *planned) int {
	value := p.score
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

// next returns the index of the most promising of some faults, the first of equal ones; -1
// if there is none.
func (h *history) next(left []planned) int {
	best, most := -1, 0
	for i := range left {
		if value := h.value(&left[i]); best < 0 || value > most {
			best, most = i, value
		}
	}
	return best
}
