// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"fmt"
	"hash/fnv"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// Fault is a kind of fault, together with the point of a run at which it is injected.
type Fault struct {
	Kind Kind `json:"kind"`
	// Step is the number of the workload step in which the fault is injected, counted from 1. 0
	// means the start of the operator.
	Step int `json:"step"`
	// Call and Nth select the request that the fault hits: the Nth request of the kind Call in the
	// step, counted from 1. Call is nil if the fault hits no request.
	Call *observe.Call `json:"call,omitempty"`
	Nth  int           `json:"nth,omitempty"`
	// Resource is the resource whose watch events the fault hits, or whose lists are outdated. If
	// the fault hits a single event, Nth is the number of this event in the step, counted from 1; 0
	// also means the first event.
	Resource string `json:"resource,omitempty"`
	// Until is the number of the step at whose end the fault ends. It equals Step unless the fault
	// lasts for several steps. It is 0 in faults of fuzz, whose runs have a single step.
	Until int `json:"until,omitempty"`
	// AsOf is the point in time whose state the operator receives in outdated lists. "step 2" is
	// the beginning of step 2; "deleting KEY" is the time at which the deletion of the object KEY
	// began. AsOf is empty for faults without outdated lists.
	AsOf string `json:"asOf,omitempty"`
}

// Name returns a description that is unique among a workload's faults.
func (f Fault) Name() string {
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

// ID returns a hash of the fault's name for use in file names. The hash is the same in each run.
func (f Fault) ID() string { return fmt.Sprintf("%08x", hash(f.Name())) }

func hash(text string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text))
	return sum.Sum32()
}

// Describe explains to users which step and which request or event the fault hits, and the fault's
// effect.
func (f Fault) Describe(w *workload.Workload) string {
	step := "while the operator starts"
	if f.Step > 0 && f.Step <= len(w.Steps) {
		step = fmt.Sprintf("in step %d (%s)", f.Step, words.OneLine(w.Steps[f.Step-1].Name))
	}
	switch {
	case f.Call != nil:
		return fmt.Sprintf("%s, the %s %s: %s", step, words.Ordinal(f.Nth), f.Call, f.Entry().Text)
	case f.Entry().StaleLists:
		return fmt.Sprintf("%s, when all is done: %s (%s)", step, f.Entry().Text, f.AsOf)
	case f.Entry().Hits == Start:
		return fmt.Sprintf("%s: %s", step, f.Entry().Text)
	}
	resource := f.Resource
	if f.Nth > 1 {
		resource = fmt.Sprintf("the %s event of %s", words.Ordinal(f.Nth), f.Resource)
	}
	text := fmt.Sprintf("%s, %s: %s", step, resource, f.Entry().Text)
	if f.Until > f.Step {
		text += fmt.Sprintf(", after step %d", f.Until)
	}
	return text
}

// Effects returns the fault's consequences for which the judge does not blame the operator. There
// are none if `f` is nil. BreaksConnections is always set for a fault at the operator's start (step
// 0), because an operator may rightly exit if it cannot start properly.
func (f *Fault) Effects() Effects {
	if f == nil {
		return Effects{}
	}
	effects := f.Entry().Effects
	effects.BreaksConnections = effects.BreaksConnections || f.Step == 0
	return effects
}

// Lasting reports whether, at the end of the given step, the fault still hides the cluster state
// from the operator.
func (f *Fault) Lasting(step int) bool {
	return f.Effects().Lasts && step >= f.Step && step < f.Until
}

// Entry returns the table entry of the fault's kind.
func (f *Fault) Entry() *Entry { return f.Kind.Entry() }

// Possible describes how the fault can happen in real clusters. It is empty if `f` is nil.
func (f *Fault) Possible() string {
	if f == nil {
		return ""
	}
	return f.Entry().Possible
}

// CheckWrite returns an error if fuzz cannot inject the fault. fuzz injects only certain kinds of
// faults, all of which hit writes, and does not support all values of Call, Nth and Step.
func (f Fault) CheckWrite() error {
	switch {
	case f.Entry().Hits != Write:
		return fmt.Errorf("there is no fault %q of a write", f.Kind)
	case !f.Entry().InFuzz:
		return fmt.Errorf("fuzz does not play the fault %q", f.Kind)
	case f.Call == nil || f.Call.Verb == "" || f.Call.Resource == "":
		return errors.New("the fault has no call: the verb and the resource of a write")
	case f.Nth < 1:
		return fmt.Errorf("the fault is of the call number %d: they are counted from 1", f.Nth)
	case f.Step != Disturbed:
		return fmt.Errorf("the fault is of the step %d: there is only one", f.Step)
	}
	return nil
}

// OnWrite describes, in a few words, a fault that hits a write: the kind of fault, and the number
// and kind of the write.
func (f Fault) OnWrite() string {
	return fmt.Sprintf("%s of the %s %s", f.Kind, words.Ordinal(f.Nth), f.Call)
}

// Disturbed is the value of Fault.Step in all faults of fuzz, because a run of fuzz has a single
// step.
const Disturbed = 1
