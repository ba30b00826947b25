// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
)

// Kind is a kind of fault.
type Kind string

// The faults of a write.
const (
	CrashBefore Kind = "CrashBefore"
	CrashAfter  Kind = "CrashAfter"
	LoseAnswer  Kind = "LoseAnswer"
	Conflict    Kind = "Conflict"
	Throttle    Kind = "Throttle"
	ServerError Kind = "ServerError"
	Refuse      Kind = "Refuse"
	Late        Kind = "Late"
	Invalid     Kind = "Invalid"
	Unavailable Kind = "Unavailable"
	Timeout     Kind = "Timeout"
	// CrashTwice is CrashAfter, and the next process is killed before its first write.
	CrashTwice Kind = "CrashTwice"
	// Overtake has another client write to the same objects while the write is on its way
	// and the operator's watches stand still.
	Overtake Kind = "Overtake"
	// Pause suspends a leader before the write is sent, which comes when another one leads.
	Pause Kind = "Pause"
	// CutOff closes all connections, until the process ends or longer than a lease.
	CutOff Kind = "CutOff"
	// KillAPIServer and KillEtcd kill that while the write is on its way, and start it again.
	KillAPIServer Kind = "KillAPIServer"
	KillEtcd      Kind = "KillEtcd"
)

// The faults of the events of a resource, from the beginning of a step on.
const (
	// DropEvents lets none arrive, until the end of the step Until. Then they are listed.
	DropEvents Kind = "DropEvents"
	// DropEvent, DuplicateEvent, LateEvent, ExpireWatch, CutWatch and CrashEvent are those of a
	// single event.
	DropEvent      Kind = "DropEvent"
	DuplicateEvent Kind = "DuplicateEvent"
	LateEvent      Kind = "LateEvent"
	ExpireWatch    Kind = "ExpireWatch"
	CutWatch       Kind = "CutWatch"
	CrashEvent     Kind = "CrashEvent"
	// Freeze holds them back until the end of the step Until.
	Freeze Kind = "Freeze"
	// FreezeLong holds them back for so long that what a controller expects expires, and
	// then touches the objects of the workload.
	FreezeLong Kind = "FreezeLong"
)

// The faults of a start, after a step has settled.
const (
	// Restart kills the operator and starts it again.
	Restart Kind = "Restart"
	// StaleStart does that too, and the first lists are as of an earlier moment.
	StaleStart Kind = "StaleStart"
)

// kinds are all of them, and what they do in words.
var kinds = map[Kind]string{
	CrashBefore:    "killed before it is sent, and started again",
	CrashAfter:     "killed when it is done and not answered, and started again",
	LoseAnswer:     "done, and the connection is closed instead of an answer",
	Conflict:       "answered 409 Conflict",
	Throttle:       "answered 429 Too Many Requests",
	ServerError:    "answered 500 Internal Server Error",
	Refuse:         "the connection is closed before it is sent",
	Late:           "sent only after 20 s, longer than a lease",
	Invalid:        "answered 422 Unprocessable Entity",
	Unavailable:    "answered 503 Service Unavailable",
	Timeout:        "done, and answered 504 Gateway Timeout",
	CrashTwice:     "killed when it is done and not answered, and again before the next write",
	Overtake:       "another client writes to the same objects first, and the operator does not hear of it yet",
	Pause:          "suspended before it is sent, which it is when another process leads",
	CutOff:         "no connection lasts from then on, until the process ends or for 20 s",
	KillAPIServer:  "the API server is killed while it is on its way, and started again",
	KillEtcd:       "etcd is killed while it is on its way, and started again",
	DropEvents:     "no event arrives, and they are listed later",
	DropEvent:      "an event does not arrive, and all is listed later",
	CrashEvent:     "killed before an event arrives, and started again",
	CutWatch:       "the connection of the watch is closed before an event",
	DuplicateEvent: "an event arrives twice",
	LateEvent:      "an event arrives 2 s late",
	ExpireWatch:    "the watch expires before an event",
	Freeze:         "all events arrive late",
	FreezeLong:     "all events arrive minutes late",
	Restart:        "killed when all is done, and started again",
	StaleStart:     "killed, and started on lists from an earlier moment",
}

// Fault is what goes wrong in a run, and where.
type Fault struct {
	Kind Kind `json:"kind"`
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
		return fmt.Sprintf("%s, the %s %s: %s", step, ordinal(f.Nth), f.Call, kinds[f.Kind])
	case f.Kind == StaleStart:
		return fmt.Sprintf("%s, when all is done: %s (%s)", step, kinds[f.Kind], f.AsOf)
	case f.Kind == Restart:
		return fmt.Sprintf("%s: %s", step, kinds[f.Kind])
	}
	resource := f.Resource
	if f.Nth > 1 {
		resource = fmt.Sprintf("the %s event of %s", ordinal(f.Nth), f.Resource)
	}
	text := fmt.Sprintf("%s, %s: %s", step, resource, kinds[f.Kind])
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

// freezes reports whether the operator sees an older state for a while.
func (f *Fault) freezes() bool {
	return f != nil && (f.Kind == Freeze || f.Kind == FreezeLong || f.Kind == DropEvents)
}

// skips reports whether the operator may never see a state in between, so that it may
// rightly do less.
func (f *Fault) skips() bool {
	return f != nil && (f.freezes() || f.Kind == ExpireWatch || f.Kind == DropEvent || f.Kind == CutWatch || f.Kind == StaleStart || f.Kind == LateEvent || f.killsControlPlane() || f.Kind == Late || f.Kind == Pause)
}

// annotates reports whether another client annotates objects of users as well.
func (f *Fault) annotates() bool { return f != nil && (f.Kind == Overtake || f.Kind == FreezeLong) }

// Possible says when such a fault happens to an operator, so that no one takes it for an
// invention of the kit.
func (f Fault) Possible() string {
	switch f.Kind {
	case CrashBefore, CrashAfter, CrashTwice, CrashEvent, Restart:
		return "A process can be killed at any moment: by its node, by an eviction, by the memory it needs."
	case Freeze, FreezeLong, LateEvent:
		return "A watch can be late at any time, with every version of server and client: nothing bounds how long an event is on its way."
	case DropEvents, DropEvent, ExpireWatch:
		return "A watch that ends is opened again, and one whose version is too old begins with a list: what was in between is never seen."
	case DuplicateEvent:
		return "A list that follows a watch shows objects again that were seen before."
	case StaleStart:
		return "The operator's first list is as of resourceVersion 0, which an API server answers from its cache: one of several API servers may be behind the one that was asked before. It cannot happen to a client that streams its lists, or with a single API server."
	case Pause:
		return "A process can stand still for any time: its node is suspended, or its memory is swapped. What it has sent arrives when another one leads."
	case LoseAnswer, Refuse, Late, CutOff, CutWatch:
		return "A connection can break, and a request can be late, at any time."
	case KillAPIServer, KillEtcd:
		return "The control plane is upgraded, moved, or ends by a failure of its machine."
	case Invalid:
		return "An admission policy or a webhook can refuse a write at any time, for reasons that pass."
	case Conflict, Overtake:
		return "Another client can write the object at any time."
	}
	return "An API server answers so when it is overloaded, or one of its webhooks or its etcd fails."
}

// breaksConnections reports whether an operator may rightly end itself, to be started
// again.
func (f *Fault) breaksConnections() bool {
	return f != nil && (f.Step == 0 || f.Kind == Refuse || f.Kind == Late || f.Kind == LoseAnswer || f.Kind == CutOff || f.Kind == Pause || f.killsControlPlane())
}

// killsControlPlane reports whether the fault kills more than the operator.
func (f *Fault) killsControlPlane() bool {
	return f != nil && (f.Kind == KillAPIServer || f.Kind == KillEtcd)
}
