// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// armed is the beginning of all traces of this test.
var armed = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at returns the time that is the given number of seconds after the beginning.
func at(seconds float64) time.Time {
	return armed.Add(time.Duration(seconds * float64(time.Second)))
}

// write returns a write that the fault's rule has hit after one second, with the status that the
// operator received and the status that the proxy received from the API server.
func write(kind fault.Kind, status, upstream int, seconds float64) observe.Request {
	return observe.Request{Time: at(1), Verb: "update", Resource: "configmaps", Rule: FaultRule, Fault: kind, Status: status, Upstream: upstream, Seconds: seconds}
}

// event returns a watch event that the fault's rule has hit after one second.
func event(kind fault.Kind) observe.Request {
	return observe.Request{Time: at(1), Verb: "watch", Resource: "configmaps", Rule: FaultRule, Fault: kind, Event: "MODIFIED"}
}

// endedWatch returns a watch that began before the trace and was ended by the fault.
func endedWatch(kind fault.Kind) observe.Request {
	return observe.Request{Time: at(-1), Verb: fault.VerbWatchList, Resource: "configmaps", Rule: FaultRule, Fault: kind, Status: 200, Upstream: 200, Seconds: 3}
}

// expired returns a watch that the operator was forced to reopen, and that was answered with the
// status 410.
func expired() observe.Request {
	return observe.Request{Time: at(2), Verb: "watch", Resource: "configmaps", Rule: ExpireRule, Fault: fault.Error, Status: 410}
}

// process returns a process event the given number of seconds after the beginning.
func process(seconds float64, of string, what observe.ProcessChange) observe.ProcessEvent {
	return observe.ProcessEvent{Time: at(seconds), Of: of, What: what}
}

// restart returns the events of an operator that is killed and started again.
func restart(seconds float64) []observe.ProcessEvent {
	return []observe.ProcessEvent{process(seconds, observe.OperatorProcess, observe.Killed), process(seconds+0.1, observe.OperatorProcess, observe.Started)}
}

// touched returns the version of an object that results when another client annotates it.
func touched(t *testing.T) observe.Version {
	t.Helper()
	object := func(annotations map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "shop", "annotations": annotations}}}
	}
	return observe.Version{Time: at(1.5), Resource: "configmaps", Object: object(map[string]any{observe.TouchedAnnotation: "now"}), Old: object(nil)}
}

// fallen returns the version of a pod that was ready before.
func fallen() observe.Version {
	pod := func(ready string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready}}}}}
	}
	return observe.Version{Time: at(1.5), Resource: "pods", Object: pod("False"), Old: pod("True")}
}

// proofs maps each kind of fault to a trace that shows only its effect, so that no part of the
// trace may be missing.
func proofs(t *testing.T) map[Kind]Trace {
	requests := func(all ...observe.Request) Trace { return Trace{Requests: all} }
	with := func(trace Trace, all ...observe.ProcessEvent) Trace {
		trace.Processes = all
		return trace
	}
	killing := func(name string) Trace {
		return with(requests(write(fault.Delay, 0, 0, 2)), process(2, name, observe.Killed), process(3, name, observe.Started))
	}
	overtaken := requests(write(fault.Delay, 409, 409, 1), observe.Request{Time: at(1.6), Verb: "watch", Event: "MODIFIED", Rule: FreezeRule, Fault: fault.Freeze})
	overtaken.Versions, overtaken.Watched = []observe.Version{touched(t)}, []string{"configmaps"}
	lease := observe.Request{Time: at(3), Verb: "update", Resource: observe.Election[0], Status: 200, Upstream: 200}
	cut := observe.Request{Time: at(-1), Verb: "watch", Fault: fault.CutWatch, Seconds: 3}
	again := observe.Request{Time: at(2), Verb: "create", Rule: AgainRule, Fault: fault.Hang}
	stale := observe.Request{Time: at(2), Verb: "list", Rule: FaultRule, Fault: fault.Stale, Status: 200, Upstream: 200, Older: true}
	ask := func(kind fault.Kind, status int) observe.Request {
		return observe.Request{Time: at(1), Verb: "GET", Resource: "app=shop:80", Name: "/price", Rule: FaultRule, Fault: kind, Status: status, Upstream: 200}
	}
	old := ask(fault.Stale, 200)
	old.Older = true
	unready := requests(ask(fault.Delay, 200))
	unready.Versions = []observe.Version{fallen()}
	lost := with(unready, process(1.1, "app=shop:80", observe.Killed), process(1.2, "app=shop:80", observe.Started))
	return map[Kind]Trace{
		"NoAnswer": requests(ask(fault.HangAnswer, 0)), "OldAnswer": requests(old), "LoseState": lost, "FallBack": unready,
		"CrashBefore": with(requests(write(fault.Hang, 0, 0, 1)), restart(1.5)...),
		"CrashAfter":  with(requests(write(fault.HangAnswer, 0, 200, 1)), restart(1.5)...),
		"CrashTwice":  with(requests(write(fault.HangAnswer, 0, 200, 1), again), slices.Concat(restart(1.5), restart(2.5))...),
		"LoseAnswer":  requests(write(fault.LoseAnswer, 0, 200, 0)),
		"Timeout":     requests(write(fault.LoseAnswer, 504, 200, 0)),
		"Conflict":    requests(write(fault.Error, 409, 0, 0)),
		"Invalid":     requests(write(fault.Error, 422, 0, 0)),
		"Throttle":    requests(write(fault.Error, 429, 0, 0)),
		"ServerError": requests(write(fault.Error, 500, 0, 0)),
		"Unavailable": requests(write(fault.Error, 503, 0, 0)),
		"Refuse":      requests(write(fault.Close, 0, 0, 0)),
		"Late":        requests(write(fault.Delay, 200, 200, 20)),
		"CutOff":      requests(write(fault.Hang, 0, 0, 1), cut),
		"Overtake":    overtaken,
		"Pause": with(requests(write(fault.Delay, 200, 200, 4), lease), process(1.5, observe.OperatorProcess, observe.Suspended),
			process(2, observe.OperatorProcess, observe.Started), process(6, observe.OperatorProcess, observe.Resumed)),
		"KillAPIServer":  killing(component.APIServer),
		"KillEtcd":       killing(component.Etcd),
		"Freeze":         requests(event(fault.Freeze)),
		"DropEvents":     requests(event(fault.DropEvent), expired()),
		"FreezeLong":     requests(event(fault.Freeze)),
		"ExpireWatch":    requests(endedWatch(fault.ExpireWatch)),
		"CrashEvent":     with(requests(event(fault.DelayEvent)), restart(1.5)...),
		"DropEvent":      requests(event(fault.DropEvent), expired()),
		"LateEvent":      requests(event(fault.DelayEvent)),
		"CutWatch":       requests(endedWatch(fault.CutWatch)),
		"DuplicateEvent": requests(event(fault.DuplicateEvent)),
		"Restart":        with(Trace{}, restart(1)...),
		"StaleStart":     with(requests(stale), restart(1)...),
	}
}

// TestProofs checks for each kind of fault that a trace of the fault's effect is sufficient, and
// that the same trace is not sufficient if any of its parts is missing.
func TestProofs(t *testing.T) {
	full := proofs(t)
	for i := range Table {
		kind := Table[i].Kind
		t.Run(string(kind), func(t *testing.T) {
			trace, is := full[kind]
			if !is {
				t.Fatal("whether it took effect is not tested")
			}
			f := &Fault{Kind: kind, Step: 1, Resource: "configmaps", Call: &observe.Call{Resource: "app=shop:80"}}
			reached := func(change func(*Trace)) bool {
				now := trace
				now.Began, now.Now, now.Hold = armed, at(400), 330*time.Second
				now.Requests, now.Processes, now.Versions = slices.Clone(trace.Requests), slices.Clone(trace.Processes), slices.Clone(trace.Versions)
				change(&now)
				return f.TookEffect(&now)
			}
			if !reached(func(*Trace) {}) {
				t.Error("with its effect, it is not reached")
			}
			for what, change := range without(&trace) {
				if reached(change) {
					t.Errorf("without %s, it is reached", what)
				}
			}
		})
	}
}

// without returns functions that each remove a part of a trace.
func without(trace *Trace) map[string]func(*Trace) {
	ways := map[string]func(*Trace){
		"anything":           func(t *Trace) { *t = Trace{Began: armed, Now: at(400)} },
		"anything since":     func(t *Trace) { t.Began = at(100) },
		"effect of its rule": func(t *Trace) { passOn(t.Requests) },
	}
	for i := range trace.Requests {
		r := &trace.Requests[i]
		ways[fmt.Sprintf("the request %s of the rule %q", r, r.Rule)] = func(t *Trace) { t.Requests = slices.Delete(t.Requests, i, i+1) }
	}
	for i, e := range trace.Processes {
		ways[fmt.Sprintf("the event that %s is %s (%d)", e.Of, e.What, i)] = func(t *Trace) { t.Processes = slices.Delete(t.Processes, i, i+1) }
	}
	for i := range trace.Versions {
		ways["the other client's write"] = func(t *Trace) { t.Versions = slices.Delete(t.Versions, i, i+1) }
	}
	if len(trace.Requests) == 0 {
		delete(ways, "effect of its rule")
	}
	return ways
}

// passOn changes requests and events that were hit by a rule as if the rule had no effect on them.
func passOn(requests []observe.Request) {
	for i := range requests {
		r := &requests[i]
		r.Rule, r.Fault, r.Older = "", "", false
		if r.Event == "" {
			r.Status, r.Upstream = 200, 200
		}
	}
}

// TestProofsThatFail checks traces that resemble a fault's effect but do not prove it.
func TestProofsThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   Kind
		change func(*Trace)
	}{
		"a conflict of the API server's own":               {"Conflict", func(t *Trace) { t.Requests[0].Upstream = 409 }},
		"another status":                                   {"Throttle", func(t *Trace) { t.Requests[0].Status = 503 }},
		"an answer that is not lost":                       {"LoseAnswer", func(t *Trace) { t.Requests[0].Status = 200 }},
		"a write that is sent before the crash":            {"CrashBefore", func(t *Trace) { t.Requests[0].Upstream = 200 }},
		"a write that is not sent before the crash":        {"CrashAfter", func(t *Trace) { t.Requests[0].Upstream = 0 }},
		"a crash before the write":                         {"CrashAfter", func(t *Trace) { t.Requests[0].Time = at(2) }},
		"an operator that ends by itself":                  {"Restart", func(t *Trace) { t.Processes[0].What = observe.Exited }},
		"a control plane that is restarted":                {"Restart", func(t *Trace) { t.Processes[0].Of, t.Processes[1].Of = component.Etcd, component.Etcd }},
		"a second write that is sent":                      {"CrashTwice", func(t *Trace) { t.Requests[1].Upstream = 201 }},
		"a write that is sent early":                       {"Late", func(t *Trace) { t.Requests[0].Seconds = 19 }},
		"a write that is lost before another client's":     {"Overtake", func(t *Trace) { t.Requests[0].Upstream = 0 }},
		"another client that was first long ago":           {"Overtake", func(t *Trace) { t.Versions[0].Time = at(0.5) }},
		"an object that is new":                            {"Overtake", func(t *Trace) { t.Versions[0].Old = nil }},
		"an election that comes after the held write":      {"Pause", func(t *Trace) { t.Requests[1].Time = at(5.5) }},
		"an election before another process is started":    {"Pause", func(t *Trace) { t.Requests[1].Time = at(1.8) }},
		"an election that fails":                           {"Pause", func(t *Trace) { t.Requests[1].Upstream = 409 }},
		"an API server that is killed after the write":     {"KillAPIServer", func(t *Trace) { t.Requests[0].Seconds = 0.5 }},
		"etcd in place of the API server":                  {"KillAPIServer", func(t *Trace) { t.Processes[0].Of, t.Processes[1].Of = component.Etcd, component.Etcd }},
		"events that are held back shorter than --hold":    {"FreezeLong", func(t *Trace) { t.Now = at(300) }},
		"an event that is dropped in place of late":        {"LateEvent", func(t *Trace) { t.Requests[0].Fault = fault.DropEvent }},
		"a watch that is not answered 410":                 {"DropEvent", func(t *Trace) { t.Requests[1].Status = 200 }},
		"an answer that comes":                             {"NoAnswer", func(t *Trace) { t.Requests[0].Status = 200 }},
		"an answer as of now":                              {"OldAnswer", func(t *Trace) { t.Requests[0].Older = false }},
		"the program of another application":               {"LoseState", func(t *Trace) { t.Processes[0].Of, t.Processes[1].Of = "app=bakery:80", "app=bakery:80" }},
		"a pod that was not ready before":                  {"FallBack", func(t *Trace) { t.Versions[0].Old = t.Versions[0].Object }},
		"a pod that is ready":                              {"FallBack", func(t *Trace) { t.Versions[0].Object = t.Versions[0].Old }},
		"a pod that was not ready long ago":                {"FallBack", func(t *Trace) { t.Versions[0].Time = at(0.5) }},
		"a list as of now":                                 {"StaleStart", func(t *Trace) { t.Requests[0].Older = false }},
		"a connection that another rule than these closes": {"CutOff", func(t *Trace) { t.Requests[1].Rule = "other" }},
	} {
		trace := proofs(t)[tc.kind]
		trace.Began, trace.Now, trace.Hold = armed, at(400), 330*time.Second
		if tc.change(&trace); (&Fault{Kind: tc.kind, Resource: "configmaps", Call: &observe.Call{Resource: "app=shop:80"}}).TookEffect(&trace) {
			t.Errorf("%s counts as %s", name, tc.kind)
		}
	}
}

// TestOtherProofs checks traces of faults that take effect in a less common way.
func TestOtherProofs(t *testing.T) {
	listed := observe.Request{Time: at(2), Verb: "list", Resource: "configmaps", Status: 200, Upstream: 200}
	closed := observe.Request{Time: at(2), Verb: "get", Rule: AgainRule, Fault: fault.Close}
	unwatched := proofs(t)["Overtake"]
	unwatched.Requests, unwatched.Watched = unwatched.Requests[:1], []string{"secrets"}
	for name, tc := range map[string]struct {
		kind  Kind
		trace Trace
	}{
		"an operator that lists by itself":       {"DropEvent", Trace{Requests: []observe.Request{event(fault.DropEvent), listed}}},
		"an operator that does not wait 20 s":    {"Late", Trace{Requests: []observe.Request{write(fault.Delay, 0, 0, 10)}}},
		"a read that is still delayed":           {"Late", Trace{Pending: true}},
		"a request instead of a watch is closed": {"CutOff", Trace{Requests: []observe.Request{write(fault.Hang, 0, 0, 1), closed}}},
		"an object that no one watches":          {"Overtake", unwatched},
	} {
		tc.trace.Began = armed
		if !(&Fault{Kind: tc.kind, Resource: "configmaps"}).TookEffect(&tc.trace) {
			t.Errorf("%s does not count as %s", name, tc.kind)
		}
	}
	if (&Fault{Kind: "NoSuchFault"}).TookEffect(&Trace{Began: armed, Processes: restart(1)}) {
		t.Error("a fault that does not exist is reached")
	}
}
