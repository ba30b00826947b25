// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// fault is one thing that goes wrong in a run.
type fault struct {
	name string
	// rule is the proxy's, without its name and match.
	rule string
	// on is what it is done to.
	on target
	// at is which write or read it is done to, or which event of the resource.
	at       int
	resource string
	// begin is done at the beginning, beside what users do, and tells whether the
	// fault was done.
	begin func(*scenarioRun) (reached bool)
	// then is done as soon as the rule was.
	then func(*scenarioRun)
	// lasting: it lasts until then ends it.
	lasting bool
	// fresh: the next run gets another manager. After each broken watch client-go
	// waits for longer, up to a minute, before it watches again.
	fresh bool
	// leaders: there are two managers, and the rule is for the first leader.
	leaders bool
	// once: it is done at one write of each scenario, as it takes long.
	once bool
	// sparse: it is also done to resources whose events are many.
	sparse bool
}

// target is what a fault is done to.
type target string

const (
	write target = "write"
	read  target = "read"
	event target = "event"
	// start is the manager's start, which is when users act.
	start target = "start"
)

// faultRule is the name of the rule in the proxy.
const faultRule = "fault"

// election makes for leaders that come and go in seconds.
var election = []string{
	"--leader-elect", "--leader-elect-resource-namespace=tidekeeper-system",
	"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=300ms",
}

// held is a rule that holds a write until the rule is removed, and then sends it.
const held = "{kind: Delay, for: 5m}"

// onWrites are what can go wrong with a write.
var onWrites = []fault{
	{name: "killed before it is sent", rule: "{kind: Hang}", then: killed},
	{name: "killed between sending and answer", rule: "{kind: HangAnswer}", then: killed},
	{name: "killed, and its successor killed at its first write", rule: "{kind: HangAnswer}", then: killedTwice},
	{name: "answer 409", rule: "{kind: Error, code: 409}"},
	{name: "answer 422", rule: "{kind: Error, code: 422}"},
	{name: "answer 429", rule: "{kind: Error, code: 429, retryAfter: 1s}"},
	{name: "answer 500", rule: "{kind: Error, code: 500}"},
	{name: "answer 503", rule: "{kind: Error, code: 503}"},
	{name: "closed before it is sent", rule: "{kind: Close}"},
	{name: "answer lost", rule: "{kind: LoseAnswer}"},
	{name: "committed, and answered 504", rule: "{kind: LoseAnswer, code: 504}"},
	{name: "overtaken by somebody else, watches frozen", rule: held, then: overtaken},
	{name: "API server killed", rule: held, then: componentKilled("kube-apiserver"), fresh: true, once: true},
	{name: "etcd killed", rule: held, then: componentKilled("etcd"), fresh: true, once: true},
	{name: "leader killed", rule: "{kind: Hang}", leaders: true, then: leaderKilled},
	{name: "leader paused, and its write comes late", rule: held, leaders: true, then: leaderPaused},
	{name: "leader cut off", rule: "{kind: Hang}", leaders: true, then: leaderCutOff},
}

// onReads are what can go wrong with what is read past the cache. Such a read is
// never of an older state, which is why it is made.
var onReads = []fault{
	{name: "read answered 500", rule: "{kind: Error, code: 500}"},
	{name: "read closed", rule: "{kind: Close}"},
	{name: "read answered late", rule: "{kind: Delay, for: 1s}"},
}

// onEvents are what can go wrong with an event of a watch.
var onEvents = []fault{
	{name: "event dropped, and listed again later", rule: "{kind: DropEvent}", fresh: true, then: listedAgain, sparse: true},
	{name: "event twice", rule: "{kind: DuplicateEvent}"},
	{name: "event late", rule: "{kind: DelayEvent, for: 400ms}"},
	{name: "stream cut before it", rule: "{kind: CutWatch}", fresh: true},
	{name: "watch expired", rule: "{kind: ExpireWatch}", fresh: true},
	{name: "frozen for a while", rule: "{kind: Freeze}", lasting: true, then: frozen, sparse: true},
	{name: "killed before it", rule: "{kind: Freeze}", lasting: true, then: killed},
}

// onStart are what can go wrong when the manager starts, and lists and watches
// each resource for the first time.
var onStart = []fault{
	{name: "started on lists that fail", rule: "{kind: Error, code: 500}", begin: started},
	{name: "started on a list that hangs", rule: "{kind: Hang, for: 1s}", begin: started},
	{name: "started in the past", rule: "{kind: Stale, resourceVersion: PAST}", lasting: true, begin: startedInThePast, fresh: true},
}

// allKinds are all faults, with each target.
func allKinds() []fault {
	var all []fault
	for on, faults := range map[target][]fault{write: onWrites, read: onReads, event: onEvents, start: onStart} {
		for _, f := range faults {
			f.on = on
			all = append(all, f)
		}
	}
	return all
}

// resources are those whose events are tampered with. Of those that have many
// events and decide little, every third one is, and not in each way.
var (
	resources = []string{
		"nodes", "nodepools.tidekeeper.dev", "runtimeclasses.node.k8s.io", "deployments.apps", "scheduledrestarts.tidekeeper.dev",
		"statefulsets.apps", "daemonsets.apps", "replicasets.apps", "pods",
	}
	many = []string{"pods", "replicasets.apps"}
)

// faultsOf are all faults that can be done to a run.
func faultsOf(s scenario, undisturbed *outcome, number int) []fault {
	var faults []fault
	plan := func(f fault, on target, resource string, at int) {
		f.on, f.resource, f.at = on, resource, at+1
		faults = append(faults, f)
	}
	for at := range undisturbed.writes {
		for _, f := range onWrites {
			if !f.once || at == number%len(undisturbed.writes) {
				plan(f, write, "", at)
			}
		}
	}
	for at := range undisturbed.reads {
		for _, f := range onReads {
			plan(f, read, "", at)
		}
	}
	for _, resource := range resources {
		sparse := slices.Contains(many, resource)
		for at := range undisturbed.events[resource] {
			for _, f := range onEvents {
				if (!sparse || f.sparse) && (!sparse && !s.sparse || at%3 == number%3) {
					plan(f, event, resource, at)
				}
			}
		}
		if undisturbed.events[resource] == 0 || sparse {
			continue
		}
		for _, f := range onStart {
			plan(f, start, resource, 0)
		}
	}
	return faults
}

// where says what was done where, for people.
func (f *fault) where(undisturbed *outcome) string {
	switch f.on {
	case event:
		return fmt.Sprintf("event %d of %s: %s", f.at, f.resource, f.name)
	case start:
		return fmt.Sprintf("%s of %s", f.name, f.resource)
	case read:
		return fmt.Sprintf("read %d (%s): %s", f.at, describe(undisturbed.reads[f.at-1]), f.name)
	default:
		return fmt.Sprintf("write %d (%s): %s", f.at, describe(undisturbed.writes[f.at-1]), f.name)
	}
}

// arm puts the rule into force.
func (f *fault) arm(w *scenarioRun) {
	others := strings.Join(unwritten, `", "!`)
	match := ""
	switch f.on {
	case write:
		match = fmt.Sprintf(`{verbs: [write], resources: ["!%s"]}`, others)
	case read:
		match = fmt.Sprintf(`{verbs: [get, list], resources: ["!%s"]}`, others)
	case event:
		match = fmt.Sprintf("{resources: [%s]}", f.resource)
	case start:
		match = fmt.Sprintf("{verbs: [list, watchlist], resources: [%s]}", f.resource)
		w.fault = f
		w.manager.Kill(w)
	}
	count := fmt.Sprintf("{from: %d, times: 1}", f.at)
	if f.lasting {
		count = fmt.Sprintf("{from: %d}", f.at)
	}
	rule := strings.ReplaceAll(f.rule, "PAST", fmt.Sprintf("%q", w.past()))
	w.proxy.Add(w, fmt.Sprintf("rules: [{name: %s, match: %s, count: %s, fault: %s}]", faultRule, match, count, rule))
}

// past is a resource version from before the users act.
func (w *scenarioRun) past() string {
	nodes := &corev1.NodeList{}
	if err := w.List(w.Context(), nodes); err != nil {
		w.Fatal(err)
	}
	return nodes.ResourceVersion
}

// killed is kill -9, and a new manager.
func killed(w *scenarioRun) {
	w.manager.Kill(w)
	w.proxy.Remove(w, faultRule)
	w.startAgain()
}

// killedTwice kills the new manager too, at the first thing that it writes.
func killedTwice(w *scenarioRun) {
	w.manager.Kill(w)
	w.proxy.Remove(w, faultRule)
	w.proxy.Add(w, fmt.Sprintf(`rules: [{name: again, match: {verbs: [write], resources: ["!%s"]}, count: {times: 1}, fault: {kind: Hang}}]`, strings.Join(unwritten, `", "!`)))
	w.startAgain()
	for w.proxy.Fired(w, "again") == 0 {
		select {
		case <-w.over: // There was nothing left to write.
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	w.manager.Kill(w)
	w.proxy.Remove(w, "again")
	w.startAgain()
}

// overtaken: somebody else writes to all that the manager may be about to write
// to, while its write is on the way, and it still sees the state as it was.
func overtaken(w *scenarioRun) {
	w.proxy.Freeze(w, "")
	w.meddle()
	done := time.Now()
	w.proxy.Remove(w, faultRule)
	w.awaitArrival(done)
	moment() // for decisions that rest on the old state
	w.proxy.Thaw(w)
}

// awaitArrival waits until the write that was held has arrived, which must not have
// been before that time.
func (w *scenarioRun) awaitArrival(notBefore time.Time) {
	framework.EventuallyWithin(w, w.patience, "the write that was held has arrived", func() error {
		for _, p := range w.proxy.PassedSince(w, w.begun) {
			if p.Rule != faultRule {
				continue
			}
			if end := p.Time.Add(time.Duration(p.Seconds * float64(time.Second))); end.Before(notBefore) || p.Upstream == 0 {
				w.Errorf("the write that was to be held came to its end too soon, at %s: %s", end, describe(p))
			}
			return nil
		}
		return fmt.Errorf("it has not")
	})
}

// componentKilled kills a part of the control plane while a write is on its way,
// and starts it again.
func componentKilled(name string) func(*scenarioRun) {
	return func(w *scenarioRun) {
		w.Component(w, "kill", name)
		w.proxy.Remove(w, faultRule)
		w.Component(w, "start", name)
		w.AwaitAPIServer(w)
	}
}

// leaderKilled: the other one takes over when the lease has run off.
func leaderKilled(w *scenarioRun) {
	w.manager.Kill(w)
	w.proxy.Remove(w, faultRule)
}

// leaderPaused: its machine is suspended while a write is on its way, which
// arrives when the other one leads. When it wakes it learns so, and ends.
func leaderPaused(w *scenarioRun) {
	w.manager.Signal(w, syscall.SIGSTOP)
	framework.EventuallyWithin(w, w.patience, "the other manager leads", func() error { return leads(w.other) })
	moment() // for what the other one does first
	now := time.Now()
	w.proxy.Remove(w, faultRule)
	w.awaitArrival(now)
	w.manager.Signal(w, syscall.SIGCONT)
	w.manager.Wait(w)
}

// leaderCutOff: nothing of what it asks is answered any more, so that it gives
// up the lease.
func leaderCutOff(w *scenarioRun) {
	w.proxy.Add(w, "rules: [{name: cut-off, fault: {kind: Close}}]")
	w.proxy.Remove(w, faultRule)
	w.proxy.Cut(w, "")
	w.manager.Wait(w)
}

// listedAgain: the event never comes. Sooner or later the API server has
// forgotten where the watch was, and then the client lists again.
func listedAgain(w *scenarioRun) {
	moment() // for decisions that rest on what it does not know
	w.proxy.Add(w, `rules: [{name: expired, match: {verbs: [watch]}, count: {times: 20}, fault: {kind: Error, code: 410, reason: Expired}}]`)
	w.proxy.Cut(w, "")
	framework.EventuallyWithin(w, w.patience, "the watches have begun anew", func() error {
		if w.proxy.Fired(w, "expired") == 0 {
			return fmt.Errorf("none has")
		}
		return nil
	})
	w.proxy.Remove(w, "expired")
}

func frozen(w *scenarioRun) {
	moment() // for decisions that rest on the old state
	w.proxy.Remove(w, faultRule)
}

// started starts the manager.
func started(w *scenarioRun) (reached bool) {
	w.startAgain()
	return w.proxy.Fired(w, faultRule) > 0
}

// startedInThePast: what it lists at its start is as it was before users acted, and
// what has happened since comes late.
func startedInThePast(w *scenarioRun) (reached bool) {
	w.proxy.Freeze(w, fmt.Sprintf("match: {resources: [%s]}", w.fault.resource))
	reached = started(w)
	w.proxy.Remove(w, faultRule)
	moment() // for decisions that rest on the old state
	w.proxy.Thaw(w)
	return reached
}

// moment is time for wrong things to happen; nothing is waited for.
func moment() { time.Sleep(700 * time.Millisecond) }
