// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	// quiet is how long no write must come before a run is considered over.
	quiet = 600 * time.Millisecond
	// quick makes statuses follow within that time.
	quick = "--status-interval=200ms"
)

// testbed is a cluster for one run after another, with a proxy and a manager that uses
// the proxy.
type testbed struct {
	*framework.Cluster
	t       testing.TB
	proxy   *framework.Proxy
	manager *framework.Manager
	// args are the arguments of the manager.
	args []string
	// users is the client of Cluster.
	users *users
	// second is the proxy of the second manager, if there has been one.
	second *framework.Proxy
	// argo says that Argo is installed.
	argo bool
	// patience is how long a run may take to finish. A fault that the client waits out,
	// or a lease that has to expire, takes seconds.
	patience time.Duration
}

func newTestbed(t testing.TB, cluster *framework.Cluster) *testbed {
	c, u := asUsers(cluster)
	return &testbed{Cluster: c, users: u, t: t, proxy: cluster.StartProxy(t, ""), patience: time.Minute}
}

// runs counts the runs on all testbeds: events about the objects of an earlier run stay
// for an hour. All names have the same length, so that none is a prefix of another.
var runs atomic.Int64

// outcome is the result of a run.
type outcome struct {
	// state is the final state, and writes are the writes that led to it.
	state  string
	writes []framework.Passed
	// reads are the reads from the API server, without the cache.
	reads []framework.Passed
	// events is the number of watch events of each resource.
	events map[string]int
	// counts is the number of writes of each object.
	counts map[string]count
	// took is the duration since the users acted.
	took time.Duration
	// reached: the fault was injected. A run may take another course, without the write
	// that the fault is for.
	reached bool
}

// play plays a scenario: undisturbed if there is no fault, otherwise up to the same
// final state as the given undisturbed run. Then users request more from the same
// manager. A witness watches all of it.
func (l *testbed) play(t testing.TB, s scenario, f *fault, undisturbed *outcome) outcome {
	w := &scenarioRun{TB: t, testbed: l, name: fmt.Sprintf("m%04d", runs.Add(1)), over: make(chan struct{})}
	t.Cleanup(func() { l.proxy.Clear(t) })
	l.needsArgo(s)
	seen := follow(t, l.Cluster, l.users, w.name, l.seen)
	judged := false
	judge := func() {
		if !judged {
			judged = true
			for _, wrong := range seen.history(t).Judge() {
				t.Error(wrong)
			}
		}
	}
	// Even for a run that does not finish.
	t.Cleanup(judge)
	l.start(t, s.args, f)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		t.Logf("the end of the log of the manager:\n%s", lastLines(l.manager.Log(), 30))
		if w.other != nil {
			t.Logf("the end of the log of the second manager:\n%s", lastLines(w.other.Log(), 30))
		}
	})
	if f != nil && f.leaders {
		w.startSecond()
	}
	s.prepare(w)
	l.settle(t)

	watched := l.watched(t)
	w.begun = l.proxy.Mark(t)
	if l.second != nil {
		w.begunSecond = l.second.Mark(t)
	}
	errors := w.errorsBefore()
	begin := time.Now()
	var o outcome
	injected := make(chan struct{})
	if f == nil {
		close(injected)
	} else {
		f.arm(w)
		go func() {
			defer close(injected)
			if f.begin != nil {
				o.reached = f.begin(w)
				return
			}
			if o.reached = w.awaitFault(); o.reached && f.then != nil {
				f.then(w)
			}
		}()
	}
	s.act(w)

	w.eventually("the scenario "+s.name+" is over", func() error {
		if err := s.done(w); err != nil {
			return err
		}
		if undisturbed == nil {
			return nil
		}
		state, err := w.state()
		if err == nil && state != undisturbed.state {
			err = fmt.Errorf("the final state differs (- undisturbed, + now):\n%s", gocmp.Diff(strings.Split(undisturbed.state, "\n"), strings.Split(state, "\n")))
		}
		return err
	})
	close(w.over)
	<-injected
	l.proxy.Clear(t)
	l.settle(t)

	var err error
	if o.state, err = w.state(); err != nil {
		t.Fatal(err)
	}
	o.took = time.Since(begin)
	passed := w.passed()
	o.writes, o.reads, o.events = writes(passed), reads(passed), l.watched(t)
	o.counts = countWrites(o.writes, w.anonymous)
	for resource, before := range watched {
		if o.events[resource] -= before; f == nil && o.events[resource] < 0 {
			t.Fatalf("a watch of %s was renewed: the number of events is unknown", resource)
		}
	}
	if undisturbed != nil && o.state != undisturbed.state {
		t.Errorf("the final state has changed again (- undisturbed, + now):\n%s", gocmp.Diff(strings.Split(undisturbed.state, "\n"), strings.Split(o.state, "\n")))
	}
	w.stillAlive(s, errors)
	judge()
	return o
}

// start starts the manager if none is running with these arguments. For a fault with
// two leaders it starts the first one.
func (l *testbed) start(t testing.TB, args []string, f *fault) {
	args = append([]string{"--kubeconfig", l.proxy.Kubeconfig, quick}, args...)
	if f != nil && f.leaders {
		args = append(args, election...)
	}
	if l.manager != nil && l.manager.Running() {
		if slices.Equal(l.args, args) {
			return
		}
		l.stop()
	}
	l.args = args
	l.manager = l.StartManager(l.t, args...)
	if f != nil && f.leaders {
		framework.Eventually(t, "the first manager leads", func() error { return leads(l.manager) })
	}
}

// startAgain starts the manager again, with the same arguments.
func (l *testbed) startAgain() { l.manager = l.StartManager(l.t, l.args...) }

// leads returns nil if a manager leads.
func leads(m *framework.Manager) error {
	metrics, err := m.TryMetrics()
	if err == nil && metrics.Sum("leader_election_master_status") == 0 {
		err = fmt.Errorf("it does not")
	}
	return err
}

// startSecond starts the second manager, with the arguments of the first, and with its own
// proxy that only keeps a log. It is stopped at the end of the run, after all objects of the run are deleted.
func (w *scenarioRun) startSecond() {
	if w.second == nil {
		w.second = w.StartProxy(w.t, "")
	}
	w.other = w.StartManager(w, append(slices.Clone(w.args), "--kubeconfig", w.second.Kubeconfig)...)
}

func (l *testbed) stop() {
	if l.manager != nil && l.manager.Running() {
		l.manager.Stop(l.t)
	}
}

// passed returns the managers' requests since users began to act.
func (w *scenarioRun) passed() []framework.Passed {
	passed := w.proxy.PassedSince(w, w.begun)
	if w.other != nil {
		passed = append(passed, w.second.PassedSince(w, w.begunSecond)...)
	}
	return passed
}

// settle waits until nothing has been written for a while.
func (l *testbed) settle(t testing.TB) {
	t.Helper()
	offset := l.proxy.Mark(t)
	since := time.Now()
	framework.EventuallyWithin(t, l.patience, "no more writes", func() error {
		now := l.proxy.Mark(t)
		if now != offset && len(writes(l.proxy.PassedSince(t, offset))) > 0 {
			since = time.Now()
		}
		offset = now
		if time.Since(since) < quiet {
			return fmt.Errorf("the last write was %s ago", time.Since(since))
		}
		return nil
	})
}

// watched returns the number of events of each resource that the manager has received.
func (l *testbed) watched(t testing.TB) map[string]int {
	t.Helper()
	events := map[string]int{}
	for _, watch := range l.proxy.Watches(t) {
		events[watch.Resource] += watch.Passed
	}
	return events
}

// unwritten are resources whose writes do not count, as they have no lasting effect:
// leases, events and access reviews.
var unwritten = []string{"leases", "events", "selfsubjectaccessreviews"}

// writes returns the writes in a log that count.
func writes(passed []framework.Passed) []framework.Passed {
	return slices.DeleteFunc(slices.Clone(passed), func(p framework.Passed) bool {
		resource, _, _ := strings.Cut(p.Resource, ".")
		return p.Resource == "" || isRead(p.Verb) || slices.Contains(unwritten, resource)
	})
}

// reads returns the reads in a log that bypassed the cache.
func reads(passed []framework.Passed) []framework.Passed {
	return slices.DeleteFunc(slices.Clone(passed), func(p framework.Passed) bool {
		resource, _, _ := strings.Cut(p.Resource, ".")
		return p.Resource == "" || p.Verb != "get" && p.Verb != "list" || slices.Contains(unwritten, resource)
	})
}

func isRead(verb string) bool {
	return slices.Contains([]string{"get", "list", "watch", "watchlist"}, verb)
}

// awaitFault waits until the fault was injected, or the run is over without it.
func (w *scenarioRun) awaitFault() bool {
	for {
		if w.proxy.Fired(w, faultRule) > 0 {
			return true
		}
		select {
		case <-w.over:
			return w.proxy.Fired(w, faultRule) > 0
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// describe describes a request in a message.
func describe(p framework.Passed) string {
	text := fmt.Sprintf("%s %s %s: %d", p.Verb, p.Resource, cmp.Or(p.Name, "-"), p.Status)
	if p.Fault != "" {
		text += " " + p.Fault
	}
	return text
}
