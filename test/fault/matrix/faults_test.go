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
	// rule is the fault of the proxy's rule.
	rule string
	// on is what the fault is injected into.
	on target
	// at is the number of the write or read, or of the event of the resource.
	at       int
	resource string
	// begin runs at the start, in parallel with what users do, and reports whether the
	// fault was injected.
	begin func(*scenarioRun) (reached bool)
	// then runs as soon as the rule has fired.
	then func(*scenarioRun)
	// lasting: the fault lasts until then ends it.
	lasting bool
	// fresh: the next run gets another manager. After each broken watch client-go
	// waits for longer, up to a minute, before it watches again.
	fresh bool
	// leaders: there are two managers, and the rule is for the first leader.
	leaders bool
	// once: it is injected into one write of each scenario only, as it takes long.
	once bool
	// sparse: it is also injected into resources with many events.
	sparse bool
}

// target is what a fault is injected into.
type target string

const (
	write target = "write"
	read  target = "read"
	event target = "event"
	// start is the start of the manager, at the same time as users act.
	start target = "start"
)

// faultRule is the name of the rule in the proxy.
const faultRule = "fault"

// election has the flags for leader election with a takeover within seconds.
var election = []string{
	"--leader-elect", "--leader-elect-resource-namespace=tidekeeper-system",
	"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=300ms",
}

// held holds a write until the rule is removed, and then sends it.
const held = "{kind: Delay, for: 5m}"

// onWrites are the faults of a write.
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
	{name: "overtaken by another client, watches frozen", rule: held, then: overtaken},
	{name: "API server killed", rule: held, then: componentKilled("kube-apiserver"), fresh: true, once: true},
	{name: "etcd killed", rule: held, then: componentKilled("etcd"), fresh: true, once: true},
	{name: "leader killed", rule: "{kind: Hang}", leaders: true, then: leaderKilled},
	{name: "leader paused, and its write comes late", rule: held, leaders: true, then: leaderPaused},
	{name: "leader cut off", rule: "{kind: Hang}", leaders: true, then: leaderCutOff},
}

// onReads are the faults of a read from the API server. Such a read never returns an
// older state, which is the reason for it.
var onReads = []fault{
	{name: "read answered 500", rule: "{kind: Error, code: 500}"},
	{name: "read closed", rule: "{kind: Close}"},
	{name: "read answered late", rule: "{kind: Delay, for: 1s}"},
}

// onEvents are the faults of an event of a watch.
var onEvents = []fault{
	{name: "event dropped, and listed again later", rule: "{kind: DropEvent}", fresh: true, then: listedAgain, sparse: true},
	{name: "event twice", rule: "{kind: DuplicateEvent}"},
	{name: "event late", rule: "{kind: DelayEvent, for: 400ms}"},
	{name: "stream cut before it", rule: "{kind: CutWatch}", fresh: true},
	{name: "watch expired", rule: "{kind: ExpireWatch}", fresh: true},
	{name: "frozen for a while", rule: "{kind: Freeze}", lasting: true, then: frozen, sparse: true},
	{name: "killed before it", rule: "{kind: Freeze}", lasting: true, then: killed},
}

// onStart are the faults at the start of the manager, when it lists and watches each
// resource for the first time.
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

// resources are those with faults in their events. For resources with many events that
// matter little, only every third event gets a fault, and not every kind of fault.
var (
	resources = []string{
		"nodes", "nodepools.tidekeeper.dev", "runtimeclasses.node.k8s.io", "deployments.apps", "scheduledrestarts.tidekeeper.dev", "freezes.tidekeeper.dev",
		"statefulsets.apps", "daemonsets.apps", "rollouts.argoproj.io", "replicasets.apps", "pods",
	}
	many = []string{"pods", "replicasets.apps"}
)

// faultsOf returns all faults that can be injected into a run.
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

// where describes the fault and its location.
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

// arm adds the rule to the proxy.
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

// killed kills the manager with SIGKILL and starts another.
func killed(w *scenarioRun) {
	w.manager.Kill(w)
	w.proxy.Remove(w, faultRule)
	w.startAgain()
}

// killedTwice kills the new manager, too, at its first write.
func killedTwice(w *scenarioRun) {
	w.manager.Kill(w)
	w.proxy.Remove(w, faultRule)
	w.proxy.Add(w, fmt.Sprintf(`rules: [{name: again, match: {verbs: [write], resources: ["!%s"]}, count: {times: 1}, fault: {kind: Hang}}]`, strings.Join(unwritten, `", "!`)))
	w.startAgain()
	for w.proxy.Fired(w, "again") == 0 {
		select {
		case <-w.over: // Nothing was left to write.
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	w.manager.Kill(w)
	w.proxy.Remove(w, "again")
	w.startAgain()
}

// overtaken: another client writes to all objects that the manager may be about to
// write, while a write of the manager is on the way and its watches still show the old
// state.
func overtaken(w *scenarioRun) {
	w.proxy.Freeze(w, "")
	w.meddle()
	done := time.Now()
	w.proxy.Remove(w, faultRule)
	w.awaitArrival(done)
	moment() // for decisions based on the old state
	w.proxy.Thaw(w)
}

// awaitArrival waits until the held write has arrived, which must not be before that
// time.
func (w *scenarioRun) awaitArrival(notBefore time.Time) {
	framework.EventuallyWithin(w, w.patience, "the held write has arrived", func() error {
		for _, p := range w.proxy.PassedSince(w, w.begun) {
			if p.Rule != faultRule {
				continue
			}
			if end := p.Time.Add(time.Duration(p.Seconds * float64(time.Second))); end.Before(notBefore) || p.Upstream == 0 {
				w.Errorf("the write that should be held was answered too early, at %s: %s", end, describe(p))
			}
			return nil
		}
		return fmt.Errorf("it has not")
	})
}

// componentKilled kills a component of the control plane while a write is on its way,
// and starts it again.
func componentKilled(name string) func(*scenarioRun) {
	return func(w *scenarioRun) {
		w.Component(w, "kill", name)
		w.proxy.Remove(w, faultRule)
		w.Component(w, "start", name)
		w.AwaitAPIServer(w)
	}
}

// leaderKilled: the other manager takes over when the lease has expired.
func leaderKilled(w *scenarioRun) {
	w.manager.Kill(w)
	w.proxy.Remove(w, faultRule)
}

// leaderPaused: the leader's machine is suspended while a write is on its way, which
// arrives when the other manager is the leader. When the old leader resumes, it
// notices that and exits.
func leaderPaused(w *scenarioRun) {
	w.manager.Signal(w, syscall.SIGSTOP)
	framework.EventuallyWithin(w, w.patience, "the other manager leads", func() error { return leads(w.other) })
	moment() // for the first actions of the other manager
	now := time.Now()
	w.proxy.Remove(w, faultRule)
	w.awaitArrival(now)
	w.manager.Signal(w, syscall.SIGCONT)
	w.manager.Wait(w)
}

// leaderCutOff: the leader's requests are no longer answered, so it gives up the lease.
func leaderCutOff(w *scenarioRun) {
	w.proxy.Add(w, "rules: [{name: cut-off, fault: {kind: Close}}]")
	w.proxy.Remove(w, faultRule)
	w.proxy.Cut(w, "")
	w.manager.Wait(w)
}

// listedAgain: the event never arrives. Eventually the resourceVersion of the watch
// expires, and then the client lists again.
func listedAgain(w *scenarioRun) {
	moment() // for decisions without the event
	w.proxy.Add(w, `rules: [{name: expired, match: {verbs: [watch]}, count: {times: 20}, fault: {kind: Error, code: 410, reason: Expired}}]`)
	w.proxy.Cut(w, "")
	framework.EventuallyWithin(w, w.patience, "the watches have been opened again", func() error {
		if w.proxy.Fired(w, "expired") == 0 {
			return fmt.Errorf("none has been")
		}
		return nil
	})
	w.proxy.Remove(w, "expired")
}

func frozen(w *scenarioRun) {
	moment() // for decisions based on the old state
	w.proxy.Remove(w, faultRule)
}

// started starts the manager.
func started(w *scenarioRun) (reached bool) {
	w.startAgain()
	return w.proxy.Fired(w, faultRule) > 0
}

// startedInThePast: the lists at the start have the state from before users acted, and
// later events arrive late.
func startedInThePast(w *scenarioRun) (reached bool) {
	w.proxy.Freeze(w, fmt.Sprintf("match: {resources: [%s]}", w.fault.resource))
	reached = started(w)
	w.proxy.Remove(w, faultRule)
	moment() // for decisions based on the old state
	w.proxy.Thaw(w)
	return reached
}

// moment gives wrong things time to happen; it waits for nothing in particular.
func moment() { time.Sleep(700 * time.Millisecond) }
