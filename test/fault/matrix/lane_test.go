// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	// quiet is how long nothing is written before a run is taken for over.
	quiet = 600 * time.Millisecond
	// quick lets statuses follow within that while.
	quick = "--status-interval=200ms"
)

// lane is a cluster on which one run comes after the other, with a proxy and the
// manager behind it.
type lane struct {
	*framework.Cluster
	t       testing.TB
	proxy   *framework.Proxy
	manager *framework.Manager
	runs    int
	// patience is how long a run may take to reach its end. A fault that the
	// client waits out, or a lease that has to run off, takes seconds.
	patience time.Duration
}

func newLane(t testing.TB, cluster *framework.Cluster) *lane {
	return &lane{Cluster: cluster, t: t, proxy: cluster.StartProxy(t, ""), patience: time.Minute}
}

// outcome is what came of a run.
type outcome struct {
	// state is what there was at the end, and writes what was sent to get there.
	state  string
	writes []framework.Passed
	// events is how many events of each resource were watched.
	events map[string]int
	// reached: the fault was done. A run may take another way, on which there is
	// no such write.
	reached bool
}

// counts returns how many of the writes the API server has accepted, and how many
// it has refused, mostly because somebody else was quicker.
func (o *outcome) counts() (accepted, refused int) {
	for _, write := range o.writes {
		switch {
		case write.Upstream >= http.StatusBadRequest:
			refused++
		case write.Upstream != 0:
			accepted++
		}
	}
	return accepted, refused
}

// play plays a scenario: undisturbed if there is no fault, else to the same end
// as the undisturbed run that is given.
func (l *lane) play(t testing.TB, s scenario, f *fault, undisturbed *outcome) outcome {
	l.runs++
	// Of one length, so that no name is the beginning of another.
	w := &world{TB: t, lane: l, name: fmt.Sprintf("m%04d", l.runs)}
	t.Cleanup(func() { l.proxy.Clear(t) })
	l.start(f)
	manager := l.manager
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log of the manager:\n%s", lastLines(manager.Log(), 30))
		}
	})
	s.prepare(w)
	l.settle(t)

	watched := l.watched(t)
	w.begun = l.proxy.Mark(t)
	var o outcome
	stop, injected := make(chan struct{}), make(chan struct{})
	if f == nil {
		close(injected)
	} else {
		f.arm(w)
		go func() {
			defer close(injected)
			if o.reached = w.awaitFault(stop); o.reached && f.then != nil {
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
			err = fmt.Errorf("the end is another (- undisturbed, + now):\n%s", gocmp.Diff(strings.Split(undisturbed.state, "\n"), strings.Split(state, "\n")))
		}
		return err
	})
	close(stop)
	<-injected
	l.settle(t)

	var err error
	if o.state, err = w.state(); err != nil {
		t.Fatal(err)
	}
	o.writes, o.events = writes(l.proxy.PassedSince(t, w.begun)), l.watched(t)
	for resource, before := range watched {
		o.events[resource] -= before
	}
	if undisturbed != nil && o.state != undisturbed.state {
		t.Errorf("the end has changed again (- undisturbed, + now):\n%s", gocmp.Diff(strings.Split(undisturbed.state, "\n"), strings.Split(o.state, "\n")))
	}
	if l.manager.Running() {
		l.manager.AssertSound(t)
	}
	return o
}

// start starts the manager if none runs, or for a fault between two leaders one
// of the two.
func (l *lane) start(f *fault) {
	switch {
	case f != nil && f.leaders:
		l.stop()
		l.manager = l.StartManager(l.t, append([]string{"--kubeconfig", l.proxy.Kubeconfig, quick}, election...)...)
	case l.manager == nil || !l.manager.Running():
		l.manager = l.StartManager(l.t, "--kubeconfig", l.proxy.Kubeconfig, quick)
	}
}

func (l *lane) stop() {
	if l.manager != nil && l.manager.Running() {
		l.manager.Stop(l.t)
	}
}

// settle waits until nothing has been written for a while.
func (l *lane) settle(t testing.TB) {
	t.Helper()
	offset := l.proxy.Mark(t)
	since := time.Now()
	framework.EventuallyWithin(t, l.patience, "nothing is written any more", func() error {
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

// watched returns how many events of each resource the manager has been sent.
func (l *lane) watched(t testing.TB) map[string]int {
	t.Helper()
	events := map[string]int{}
	for _, watch := range l.proxy.Watches(t) {
		events[watch.Resource] += watch.Passed
	}
	return events
}

// unwritten are resources that are created and yet change nothing that lasts:
// leases are how a leader lives, events are words, and a review is a question.
var unwritten = []string{"leases", "events", "selfsubjectaccessreviews"}

// writes returns what of a log are writes that count.
func writes(passed []framework.Passed) []framework.Passed {
	var list []framework.Passed
	for _, p := range passed {
		switch p.Verb {
		case "get", "list", "watch", "watchlist":
			continue
		}
		resource, _, _ := strings.Cut(p.Resource, ".")
		if p.Resource != "" && !slices.Contains(unwritten, resource) {
			list = append(list, p)
		}
	}
	return list
}

// awaitFault waits until the fault was done, or the run is over without it.
func (w *world) awaitFault(stop <-chan struct{}) bool {
	for {
		if w.proxy.Fired(w, faultRule) > 0 {
			return true
		}
		select {
		case <-stop:
			return w.proxy.Fired(w, faultRule) > 0
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// describe words a write for people.
func describe(p framework.Passed) string {
	text := fmt.Sprintf("%s %s %s: %d", p.Verb, p.Resource, cmp.Or(p.Name, "-"), p.Status)
	if p.Fault != "" {
		text += " " + p.Fault
	}
	return text
}
