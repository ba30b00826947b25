// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// Kind is the name of a kind of fault, such as CrashAfter.
type Kind string

// Entry describes a kind of fault. Planning, injection, judging, reports and documentation all use
// these fields, so that a new kind needs only a new entry in Table.
type Entry struct {
	Kind Kind
	// Text describes the fault's effect in reports.
	Text string
	// Possible describes how the fault can happen in real clusters, to show readers of a finding
	// that the fault is realistic.
	Possible string
	Hits     Traffic
	// Rule is the fault that the proxy injects into requests or watch events. It is the zero value
	// for faults that restart the operator at the end of a step.
	Rule fault.Fault
	// Act, unless nil, is called after the proxy has injected Rule for the first time. ActInRun,
	// unless nil, is called instead of Act. It is for actions that need the baseline of a workload,
	// which fuzz does not have.
	Act      func(Actor, context.Context) error
	ActInRun func(RunActor, context.Context) error
	// ActOnApplication, unless nil, is called in the same way, for a fault that hits requests to
	// applications.
	ActOnApplication func(ApplicationActor, context.Context) error
	// Proof reports whether the trace of a run shows that the fault took effect.
	Proof Proof
	// Score is the base score for the traffic in Hits. The planner
	// adds a value that depends on the target. ReadScore is the base score for a read, or 0 if the
	// fault does not hit reads. SpanScore is the base score if the fault lasts for several steps,
	// or 0 if it never does. ApplicationScore is the base score of a fault of writes for a request to an
	// application, or 0 if the fault does not hit these.
	Score, ReadScore, SpanScore, ApplicationScore int
	// ByInterest is set if the planner adds the resource's score (see Baseline.Interest) to the
	// score of a fault that hits events.
	ByInterest bool
	// Family is the name of a group of faults that reveal the same kind of mistake in operators.
	Family string
	// NeedsProgram is set if the fault hits only requests to applications that are programs.
	NeedsProgram bool
	// Only restricts the fault to some of the operator's writes. It is empty for no restriction.
	Only Restriction
	Effects
	// InFuzz is set if fuzz injects the fault, too. Faults that depend on a workload's steps or
	// their durations are only for explore.
	InFuzz bool
}

// Traffic is the kind of requests or events that a fault hits.
type Traffic string

// Values of Traffic, the kinds of traffic that faults hit.
const (
	// Write stands for requests that change objects. Some faults with this value also hit reads
	// (see Entry.ReadScore).
	Write Traffic = "write"
	// Event stands for a single watch event of a resource. Events stands for all watch events of a
	// resource from the beginning of a step.
	Event  Traffic = "event"
	Events Traffic = "events"
	// Start stands for a restart of the operator at the end of a step.
	Start Traffic = "start"
	// Ask stands for requests of the operator to applications. Some faults of writes hit these, too
	// (see Entry.ApplicationScore).
	Ask Traffic = "request to an application"
)

// Restriction limits a fault to some of the operator's writes, or to some operators.
type Restriction string

// Values of Restriction. The empty value is no restriction.
const (
	// Changes restricts the fault to updates and patches, because another client can change the
	// same object before such a write arrives.
	Changes Restriction = "updates and patches"
	// First restricts the fault to the first write of a step, because the fault also affects the
	// later writes of the step.
	First Restriction = "the first write of each step"
	// Elected restricts the fault to operators that elect a leader, because other operators cannot
	// have a second process.
	Elected Restriction = "operators that elect a leader by a Lease"
)

// Effects lists consequences of a fault for which the judge does not blame the operator.
type Effects struct {
	// HidesStates is set if the operator may miss intermediate states of objects. It then rightly
	// creates or deletes fewer objects than in the baseline.
	HidesStates bool
	// BreaksConnections is set if connections of the operator fail, so that it may rightly exit.
	BreaksConnections bool
	// OtherClientWrites is set if another client annotates objects that users created.
	OtherClientWrites bool
	// KillsControlPlane is set if a control plane component is killed.
	KillsControlPlane bool
	// Lasts is set if the fault hides changes of objects from the operator until the end of a step.
	Lasts bool
	// ListsAfter is set if the end of the fault forces the operator to list the fault's resource
	// again.
	ListsAfter bool
	// Holds is set if the fault holds back watch events for the duration of the --hold flag,
	// usually minutes.
	Holds bool
	// StaleLists is set if the operator starts with outdated lists.
	StaleLists bool
	// TwoProcesses is set if two processes of the operator run in parallel.
	TwoProcesses bool
}

// Late is the delay of a request in the fault that table.go names "Late". It exceeds the usual
// lease duration in leader election, 15 s.
const Late = 20 * time.Second

// held is a fault that delays a write until the fault's rule is removed from the proxy, but no
// longer than 5 minutes.
var held = fault.Fault{Kind: fault.Delay, For: fault.Duration(5 * time.Minute)}

// answer returns a fault that answers a request with the given status code.
func answer(code int) fault.Fault { return fault.Fault{Kind: fault.Error, Code: code} }

// Causes of faults in real clusters, shown in reports.
const (
	byKill       = "A process can be killed at any moment: by its node, by an eviction, by the memory it needs."
	byConnection = "A connection can break, and a request can be late, at any time."
	byOverload   = "An API server answers so when it is overloaded, or one of its webhooks or its etcd fails."
	byClient     = "Another client can write the object at any time."
	byLateWatch  = "Nothing bounds how long an event is on its way, with every version of server and client."
	byNewWatch   = "A watch that ends is opened again, and one whose version is too old begins with a list: what was in between is never seen."
	byStandstill = "A process can stand still for any time: its node is suspended, or its memory is swapped."
	byUpgrade    = "The control plane is upgraded, moved, or ends by a failure of its machine."
)

// Table defines all kinds of faults.
var Table = []Entry{
	{
		Kind: "CrashBefore", Text: "killed before it is sent, and started again", Possible: byKill, Hits: Write,
		Rule: fault.Fault{Kind: fault.Hang}, Act: Actor.Crash, Score: 45, ApplicationScore: 36, Family: "crash", InFuzz: true,
		Proof: all(unsent, restarted(1)),
	},
	{
		Kind: "CrashAfter", Text: "killed when it is done and not answered, and started again", Possible: byKill, Hits: Write,
		Rule: fault.Fault{Kind: fault.HangAnswer}, Act: Actor.Crash, Score: 50, ApplicationScore: 44, Family: "crash", InFuzz: true,
		Proof: all(unanswered, restarted(1)),
	},
	{
		Kind: "CrashTwice", Text: "killed when it is done and not answered, and again before the next write", Possible: byKill, Hits: Write,
		Rule: fault.Fault{Kind: fault.HangAnswer}, ActInRun: RunActor.CrashTwice, Score: 20, Family: "crash",
		Proof: all(unanswered, killedAgain, restarted(2)),
	},
	{
		Kind: "LoseAnswer", Text: "done, and the connection is closed instead of an answer", Possible: byConnection, Hits: Write,
		Rule: fault.Fault{Kind: fault.LoseAnswer}, Score: 30, ApplicationScore: 46, Family: "crash", Effects: Effects{BreaksConnections: true}, InFuzz: true,
		Proof: unanswered,
	},
	{
		Kind: "Timeout", Text: "done, and answered 504 Gateway Timeout", Possible: byOverload, Hits: Write,
		Rule: fault.Fault{Kind: fault.LoseAnswer, Code: 504}, Score: 7, Family: "crash", InFuzz: true,
		Proof: answered(504, true),
	},
	{
		Kind: "Conflict", Text: "answered 409 Conflict", Possible: byClient, Hits: Write,
		Rule: answer(409), Score: 25, Family: "refused", Only: Changes, InFuzz: true,
		Proof: answered(409, false),
	},
	{
		Kind: "Invalid", Text: "answered 422 Unprocessable Entity", Hits: Write,
		Possible: "An admission policy or a webhook can refuse a write at any time, for reasons that pass.",
		Rule:     answer(422), Score: 6, Family: "refused", InFuzz: true,
		Proof: answered(422, false),
	},
	{
		Kind: "Throttle", Text: "answered 429 Too Many Requests", Possible: byOverload, Hits: Write,
		Rule: fault.Fault{Kind: fault.Error, Code: 429, RetryAfter: fault.Duration(time.Second)}, Score: 10, Family: "refused", InFuzz: true,
		Proof: answered(429, false),
	},
	{
		Kind: "ServerError", Text: "answered 500 Internal Server Error", Possible: byOverload, Hits: Write,
		Rule: answer(500), Score: 28, ReadScore: 16, Family: "refused", InFuzz: true,
		Proof: answered(500, false),
	},
	{
		Kind: "Unavailable", Text: "answered 503 Service Unavailable", Possible: byOverload, Hits: Write,
		Rule: answer(503), Score: 6, Family: "refused", InFuzz: true,
		Proof: answered(503, false),
	},
	{
		Kind: "Refuse", Text: "the connection is closed before it is sent", Possible: byConnection, Hits: Write,
		Rule: fault.Fault{Kind: fault.Close}, Score: 8, ReadScore: 14, ApplicationScore: 34, Family: "refused", Effects: Effects{BreaksConnections: true}, InFuzz: true,
		Proof: unsent,
	},
	{
		Kind: "Late", Text: "sent only after 20 s, longer than a lease", Possible: byConnection, Hits: Write,
		Rule: fault.Fault{Kind: fault.Delay, For: fault.Duration(Late)}, Score: 5, ReadScore: 8, ApplicationScore: 9, Family: "refused",
		Effects: Effects{HidesStates: true, BreaksConnections: true}, InFuzz: true,
		Proof: delayed(Late),
	},
	{
		Kind: "CutOff", Text: "no connection lasts from then on, until the process ends or for 20 s", Possible: byConnection, Hits: Write,
		Rule: fault.Fault{Kind: fault.Hang}, Act: Actor.CutOff, Score: 9, Family: "refused", Effects: Effects{BreaksConnections: true},
		Proof: all(unsent, cutOff),
	},
	{
		Kind: "Overtake", Text: "another client writes to the same objects first, and the operator does not hear of it yet", Possible: byClient, Hits: Write,
		Rule: held, ActInRun: RunActor.Overtake, Score: 32, Family: "Overtake", Only: Changes, Effects: Effects{OtherClientWrites: true},
		Proof: all(sentLater, overtaken),
	},
	{
		Kind: "Pause", Text: "suspended before it is sent, which it is when another process leads", Hits: Write,
		Possible: byStandstill, Rule: held, ActInRun: RunActor.Pause, Score: 29, Family: "Pause", Only: Elected,
		Effects: Effects{HidesStates: true, BreaksConnections: true, TwoProcesses: true},
		Proof:   all(sentLater, succeeded),
	},
	{
		Kind: "KillAPIServer", Text: "the API server is killed while it is on its way, and started again", Possible: byUpgrade, Hits: Write,
		Rule: held, Act: killing(component.APIServer), Score: 11, Family: "KillAPIServer", Only: First, Effects: withoutControlPlane,
		Proof: killedMeanwhile(component.APIServer),
	},
	{
		Kind: "KillEtcd", Text: "etcd is killed while it is on its way, and started again", Possible: byUpgrade, Hits: Write,
		Rule: held, Act: killing(component.Etcd), Score: 10, Family: "KillEtcd", Only: First, Effects: withoutControlPlane,
		Proof: killedMeanwhile(component.Etcd),
	},
	{
		Kind: "Freeze", Text: "all events arrive late", Possible: byLateWatch, Hits: Events,
		Rule: fault.Fault{Kind: fault.Freeze}, Score: 50, SpanScore: 49, ByInterest: true, Family: "late", Effects: Effects{HidesStates: true, Lasts: true},
		Proof: injected(fault.Freeze),
	},
	{
		Kind: "DropEvents", Text: "no event arrives, and they are listed later", Possible: byNewWatch, Hits: Events,
		Rule: fault.Fault{Kind: fault.DropEvent}, Score: 40, SpanScore: 48, ByInterest: true, Family: "late", Effects: Effects{HidesStates: true, Lasts: true, ListsAfter: true},
		Proof: all(injected(fault.DropEvent), listedAgain),
	},
	{
		Kind: "FreezeLong", Text: "all events arrive minutes late", Possible: byLateWatch, Hits: Events,
		Rule: fault.Fault{Kind: fault.Freeze}, Score: 20, Family: "late", Effects: Effects{HidesStates: true, Lasts: true, Holds: true, OtherClientWrites: true},
		Proof: all(injected(fault.Freeze), waited),
	},
	{
		Kind: "ExpireWatch", Text: "the watch expires before an event", Possible: byNewWatch, Hits: Event,
		Rule: fault.Fault{Kind: fault.ExpireWatch}, Score: 18, ByInterest: true, Family: "events", Effects: Effects{HidesStates: true},
		Proof: ended,
	},
	{
		Kind: "CrashEvent", Text: "killed before an event arrives, and started again", Possible: byKill, Hits: Event,
		Rule: fault.Fault{Kind: fault.DelayEvent, For: held.For}, Act: Actor.Crash, Score: 16, ByInterest: true, Family: "crash",
		Proof: all(injected(fault.DelayEvent), restarted(1)),
	},
	{
		Kind: "DropEvent", Text: "an event does not arrive, and all is listed later", Possible: byNewWatch, Hits: Event,
		Rule: fault.Fault{Kind: fault.DropEvent}, ActInRun: RunActor.ListAgain, Score: 14, ByInterest: true, Family: "events", Effects: Effects{HidesStates: true},
		Proof: all(injected(fault.DropEvent), listedAgain),
	},
	{
		Kind: "LateEvent", Text: "an event arrives 2 s late", Possible: byLateWatch, Hits: Event,
		Rule: fault.Fault{Kind: fault.DelayEvent, For: fault.Duration(2 * time.Second)}, Score: 18, Family: "events", Effects: Effects{HidesStates: true},
		Proof: injected(fault.DelayEvent),
	},
	{
		Kind: "CutWatch", Text: "the connection of the watch is closed before an event", Possible: byConnection, Hits: Event,
		Rule: fault.Fault{Kind: fault.CutWatch}, Score: 12, Family: "events", Effects: Effects{HidesStates: true},
		Proof: ended,
	},
	{
		Kind: "DuplicateEvent", Text: "an event arrives twice", Hits: Event,
		Possible: "A list that follows a watch shows objects again that were seen before.",
		Rule:     fault.Fault{Kind: fault.DuplicateEvent}, Score: 10, Family: "events",
		Proof: injected(fault.DuplicateEvent),
	},
	{
		Kind: "NoAnswer", Text: "done, and never answered, but the connection stays open; after 2 min (or `--hold`) the operator must have closed it", Possible: byStandstill, Hits: Ask,
		Rule: fault.Fault{Kind: fault.HangAnswer}, ActOnApplication: ApplicationActor.WaitForEnd, Score: 20, Family: "crash", Effects: Effects{BreaksConnections: true},
		Proof: unanswered,
	},
	{
		Kind: "OldAnswer", Text: "answered as the same request was before", Hits: Ask,
		Possible: "A copy of the application that lags behind answers from an earlier state.",
		Rule:     fault.Fault{Kind: fault.Stale}, Score: 26, Family: "application",
		Proof: oldAnswer,
	},
	{
		Kind: "LoseState", Text: "the application's program is killed before it arrives and started again without its state; its pods are not ready meanwhile", Hits: Ask,
		Possible: "A container can end at any time, and what it kept in memory is lost.",
		Rule:     held, ActOnApplication: ApplicationActor.LoseState, NeedsProgram: true, Score: 22, Family: "application", Effects: Effects{HidesStates: true, BreaksConnections: true},
		Proof: all(heldBack, programRestarted, fellBack),
	},
	{
		Kind: "FallBack", Text: "the application's pods are not ready for a moment before it arrives", Hits: Ask,
		Possible: "A probe can fail for a while in a pod that was ready.",
		Rule:     held, ActOnApplication: ApplicationActor.FallBack, Score: 24, Family: "application", Effects: Effects{HidesStates: true, BreaksConnections: true},
		Proof: all(heldBack, fellBack),
	},
	{
		Kind: "Restart", Text: "killed when all is done, and started again", Possible: byKill, Hits: Start,
		Act: Actor.Crash, Score: 50, Family: "Restart",
		Proof: startedAgain,
	},
	{
		Kind: "StaleStart", Text: "killed, and started on lists from an earlier moment", Hits: Start,
		Possible: "One of several API servers answers the operator's first list, as of resourceVersion 0, from a cache that is behind. It cannot happen to a client that streams its lists, or with a single API server.",
		ActInRun: RunActor.StartStale, Score: 40, Family: "StaleStart", Effects: Effects{HidesStates: true, StaleLists: true},
		Proof: all(staleList, startedAgain),
	},
}

// withoutControlPlane holds the effects of a short outage of a control plane component.
var withoutControlPlane = Effects{HidesStates: true, BreaksConnections: true, KillsControlPlane: true}

// killing returns an action that kills and restarts the named control plane component.
func killing(name string) func(Actor, context.Context) error {
	return func(a Actor, ctx context.Context) error { return a.KillComponent(ctx, name) }
}

// byKind maps each kind of fault to its entry in Table.
var byKind = func() map[Kind]*Entry {
	entries := map[Kind]*Entry{}
	for i := range Table {
		entries[Table[i].Kind] = &Table[i]
	}
	return entries
}()

// Entry returns the table entry of the kind, or an empty entry if the kind does not exist.
func (k Kind) Entry() *Entry {
	if e := byKind[k]; e != nil {
		return e
	}
	return &Entry{}
}

// Known reports whether Table contains the kind.
func (k Kind) Known() bool { return byKind[k] != nil }

// Hitting returns the table entries of faults that hit the given kind of traffic.
func Hitting(traffic Traffic) []*Entry {
	var entries []*Entry
	for i := range Table {
		if Table[i].Hits == traffic {
			entries = append(entries, &Table[i])
		}
	}
	return entries
}

// Acts reports whether the fault performs an action after its rule has fired.
func (e *Entry) Acts() bool { return e.Act != nil || e.ActInRun != nil || e.ActOnApplication != nil }

// Duration returns the delay of a fault that only delays a request. It is 0 for other faults.
func (e *Entry) Duration() time.Duration {
	if e.Rule.Kind != fault.Delay || e.Acts() {
		return 0
	}
	return time.Duration(e.Rule.For)
}
