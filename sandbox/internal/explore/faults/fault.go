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

// Fault is a fault, and where in a run it is injected.
type Fault struct {
	Kind Kind `json:"kind"`
	// Step is the number of the step, from 1 on; 0 is the start of the operator.
	Step int `json:"step"`
	// Call and Nth choose a request: the Nth request of that kind in the step, from 1 on.
	Call *observe.Call `json:"call,omitempty"`
	Nth  int           `json:"nth,omitempty"`
	// Resource is the resource whose watch events are hit. For a fault of a single event, Nth
	// chooses the event, from 1 on; 0 is the same as 1.
	Resource string `json:"resource,omitempty"`
	// Until is the step after which the fault ends, if it lasts; never before Step.
	Until int `json:"until,omitempty"`
	// AsOf is the time that stale lists date from: "step 2" is the beginning of that step,
	// "deleting KEY" the time at which that object was being deleted.
	AsOf string `json:"asOf,omitempty"`
}

// Name returns a description of the fault that is unique within a workload.
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

// ID returns a short name for files, which is the same in each run.
func (f Fault) ID() string { return fmt.Sprintf("%08x", hash(f.Name())) }

func hash(text string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text))
	return sum.Sum32()
}

// Describe describes the fault to users.
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

// Effects returns the consequences of the fault that the judge does not blame on the operator;
// none if f is nil. During its start, an operator may exit if the API server is unreachable.
func (f *Fault) Effects() Effects {
	if f == nil {
		return Effects{}
	}
	effects := f.Entry().Effects
	effects.BreaksConnections = effects.BreaksConnections || f.Step == 0
	return effects
}

// Lasting reports whether the fault still hides the state of the cluster from the operator when
// a step ends.
func (f *Fault) Lasting(step int) bool {
	return f.Effects().Lasts && step >= f.Step && step < f.Until
}

// Entry returns the entry of the table for the kind of the fault.
func (f *Fault) Entry() *Entry { return f.Kind.Entry() }

// Possible describes how the fault happens in real clusters; empty if f is nil.
func (f *Fault) Possible() string {
	if f == nil {
		return ""
	}
	return f.Entry().Possible
}

// CheckWrite returns an error unless the fault is a valid fault of a write in fuzz.
func (f Fault) CheckWrite() error {
	switch {
	case f.Entry().Hits != Write:
		return fmt.Errorf("there is no fault %q of a write", f.Kind)
	case f.Call == nil || f.Call.Verb == "" || f.Call.Resource == "":
		return errors.New("the fault has no call: the verb and the resource of a write")
	case f.Nth < 1:
		return fmt.Errorf("the fault is of the call number %d: they are counted from 1", f.Nth)
	case f.Step != Disturbed:
		return fmt.Errorf("the fault is of the step %d: there is only one", f.Step)
	}
	return nil
}

// OnWrite describes a fault of a write.
func (f Fault) OnWrite() string {
	return fmt.Sprintf("%s of the %s %s", f.Kind, words.Ordinal(f.Nth), f.Call)
}

// Disturbed is the step number of all faults in fuzz, which has no steps.
const Disturbed = 1
