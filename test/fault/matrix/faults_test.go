// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// fault is one thing that goes wrong in a run.
type fault struct {
	name string
	// rule is the proxy's, without its name and match.
	rule string
	// at is which write it is done to, or which event of the resource.
	at       int
	resource string
	// then is done as soon as the rule was.
	then func(*world)
	// lasting: it lasts until then ends it.
	lasting bool
	// fresh: the next run gets another manager. After each broken watch client-go
	// waits for longer, up to a minute, before it watches again.
	fresh bool
	// leaders: there are two managers, and the rule is for the first leader.
	leaders bool
}

// faultRule is the name of the rule in the proxy.
const faultRule = "fault"

// election makes for leaders that come and go in seconds.
var election = []string{
	"--leader-elect", "--leader-elect-resource-namespace=tidekeeper-system",
	"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=300ms",
}

// onWrites are what can go wrong with a write.
var onWrites = []fault{
	{name: "killed before it is sent", rule: "{kind: Hang}", then: killed},
	{name: "killed between sending and answer", rule: "{kind: HangAnswer}", then: killed},
	{name: "answer 409", rule: "{kind: Error, code: 409}"},
	{name: "answer 422", rule: "{kind: Error, code: 422}"},
	{name: "answer 429", rule: "{kind: Error, code: 429, retryAfter: 1s}"},
	{name: "answer 500", rule: "{kind: Error, code: 500}"},
	{name: "answer 503", rule: "{kind: Error, code: 503}"},
	{name: "closed before it is sent", rule: "{kind: Close}"},
	{name: "answer lost", rule: "{kind: LoseAnswer}"},
	{name: "overtaken by somebody else, watches frozen", rule: "{kind: Delay, for: 500ms}", then: overtaken},
	{name: "leader killed", rule: "{kind: Hang}", leaders: true, then: leaderKilled},
	{name: "leader paused, and its write comes late", rule: "{kind: Delay, for: 5s}", leaders: true, then: leaderPaused},
	{name: "leader cut off", rule: "{kind: Hang}", leaders: true, then: leaderCutOff},
}

// onEvents are what can go wrong with an event of a watch.
var onEvents = []fault{
	{name: "event dropped, and listed again later", rule: "{kind: DropEvent}", fresh: true, then: listedAgain},
	{name: "event twice", rule: "{kind: DuplicateEvent}"},
	{name: "event late", rule: "{kind: DelayEvent, for: 400ms}"},
	{name: "stream cut before it", rule: "{kind: CutWatch}", fresh: true},
	{name: "watch expired", rule: "{kind: ExpireWatch}", fresh: true},
	{name: "frozen for a while", rule: "{kind: Freeze}", lasting: true, then: frozen},
}

// resources are those whose events are tampered with.
var resources = []string{"nodes", "nodepools.tidekeeper.dev", "runtimeclasses.node.k8s.io", "deployments.apps", "scheduledrestarts.tidekeeper.dev"}

// arm puts the rule into force.
func (f *fault) arm(w *world) {
	match := fmt.Sprintf(`{verbs: [write], resources: ["!%s"]}`, strings.Join(unwritten, `", "!`))
	if f.resource != "" {
		match = fmt.Sprintf("{resources: [%s]}", f.resource)
	}
	count := fmt.Sprintf("{from: %d, times: 1}", f.at)
	if f.lasting {
		count = fmt.Sprintf("{from: %d}", f.at)
	}
	w.proxy.Add(w, fmt.Sprintf("rules: [{name: %s, match: %s, count: %s, fault: %s}]", faultRule, match, count, f.rule))
	if f.leaders {
		// The other one goes to the API server by itself.
		w.StartManager(w, election...)
	}
}

// killed is kill -9, and a new manager.
func killed(w *world) {
	w.manager.Kill(w)
	w.proxy.Remove(w, faultRule)
	w.start(nil)
}

// overtaken: somebody else writes to all that the manager may be about to write
// to, and it goes on to see the world as it was.
func overtaken(w *world) {
	w.proxy.Freeze(w, "")
	w.meddle()
	moment() // for decisions that rest on the old world
	w.proxy.Thaw(w)
}

// leaderKilled: the other one takes over when the lease has run off.
func leaderKilled(w *world) {
	w.manager.Kill(w)
	w.proxy.Remove(w, faultRule)
}

// leaderPaused: its machine is suspended while a write is on its way, which
// arrives when the other one leads. When it wakes it learns so, and ends.
func leaderPaused(w *world) {
	w.manager.Signal(w, syscall.SIGSTOP)
	framework.EventuallyWithin(w, w.patience, "the late write has arrived", func() error {
		for _, p := range w.proxy.PassedSince(w, w.begun) {
			if p.Rule == faultRule {
				return nil
			}
		}
		return fmt.Errorf("it has not")
	})
	w.manager.Signal(w, syscall.SIGCONT)
	w.manager.Wait(w)
}

// leaderCutOff: nothing of what it asks is answered any more, so that it gives
// up the lease.
func leaderCutOff(w *world) {
	w.proxy.Add(w, "rules: [{name: cut-off, fault: {kind: Close}}]")
	w.proxy.Remove(w, faultRule)
	w.proxy.Cut(w, "")
	w.manager.Wait(w)
}

// listedAgain: the event never comes. Sooner or later the API server has
// forgotten where the watch was, and then the client lists again.
func listedAgain(w *world) {
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

func frozen(w *world) {
	moment() // for decisions that rest on the old world
	w.proxy.Remove(w, faultRule)
}

// moment is time for wrong things to happen; nothing is waited for.
func moment() { time.Sleep(700 * time.Millisecond) }
