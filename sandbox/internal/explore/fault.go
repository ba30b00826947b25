// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
)

// Fault is what goes wrong in a run, and where.
type Fault struct {
	Kind faults.Kind `json:"kind"`
	// Step is the number of the step, from 1 on; 0 is the start of the operator.
	Step int `json:"step"`
	// Call and Nth choose a write: the Nth such one since the step began, from 1 on.
	Call *Call `json:"call,omitempty"`
	Nth  int   `json:"nth,omitempty"`
	// Resource is that of the events. Nth chooses one of them, too; 0 is the first.
	Resource string `json:"resource,omitempty"`
	// Until is the step at whose end the fault ends, if it lasts; never before Step.
	Until int `json:"until,omitempty"`
	// AsOf names the moment of a stale list, and Revision the place of that moment in a
	// run: "step 2" is before that step, "deleting KEY" when the object was being deleted.
	AsOf string `json:"asOf,omitempty"`
}

// name identifies a fault among those of a workload.
func (f Fault) name() string {
	text := fmt.Sprintf("%s at step %d", f.Kind, f.Step)
	switch {
	case f.Call != nil:
		text += fmt.Sprintf(", %s #%d", f.Call, f.Nth)
	case f.Resource != "":
		text += ", " + f.Resource
		if f.Nth > 1 {
			text += fmt.Sprintf(" #%d", f.Nth)
		}
	}
	if f.Until > f.Step {
		text += fmt.Sprintf(", until step %d", f.Until)
	}
	if f.AsOf != "" {
		text += ", as of " + f.AsOf
	}
	return text
}

// id is a short name for files, the same in every run.
func (f Fault) id() string { return fmt.Sprintf("%08x", hash(f.name())) }

func hash(text string) uint32 {
	h := uint32(2166136261)
	for _, b := range []byte(text) {
		h = (h ^ uint32(b)) * 16777619
	}
	return h
}

// describe says what the fault is, to a person.
func (f Fault) describe(w *Workload) string {
	step := "while the operator starts"
	if f.Step > 0 && f.Step <= len(w.Steps) {
		step = fmt.Sprintf("in step %d (%s)", f.Step, oneLine(w.Steps[f.Step-1].Name))
	}
	switch {
	case f.Call != nil:
		return fmt.Sprintf("%s, the %s %s: %s", step, ordinal(f.Nth), f.Call, f.entry().Text)
	case f.entry().Effects.StaleLists:
		return fmt.Sprintf("%s, when all is done: %s (%s)", step, f.entry().Text, f.AsOf)
	case f.entry().Hits == faults.Start:
		return fmt.Sprintf("%s: %s", step, f.entry().Text)
	}
	resource := f.Resource
	if f.Nth > 1 {
		resource = fmt.Sprintf("the %s event of %s", ordinal(f.Nth), f.Resource)
	}
	text := fmt.Sprintf("%s, %s: %s", step, resource, f.entry().Text)
	if f.Until > f.Step {
		text += fmt.Sprintf(", after step %d", f.Until)
	}
	return text
}

func oneLine(text string) string {
	text, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		text += " …"
	}
	return text
}

func ordinal(n int) string {
	switch n {
	case 1:
		return "first"
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

// effects are the consequences of a fault for which the operator is not to blame; there is none
// without a fault. An operator that cannot reach the API server when it starts may rightly exit.
func (f *Fault) effects() faults.Effects {
	if f == nil {
		return faults.Effects{}
	}
	effects := f.entry().Effects
	effects.BreaksConnections = effects.BreaksConnections || f.Step == 0
	return effects
}

// lasting reports whether the fault hides states from the operator in a step, and still does when
// the step is over.
func (f *Fault) lasting(step int) bool {
	return f.effects().Lasts && step >= f.Step && step < f.Until
}

func (f *Fault) entry() *faults.Entry { return f.Kind.Entry() }

// Possible says when such a fault happens to an operator in a real cluster.
func (f Fault) Possible() string { return f.entry().Possible }
