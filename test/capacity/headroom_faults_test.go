// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// lostEvents returns the number of HeadroomLost events about a pool, including repetitions.
func lostEvents(t *testing.T, pool string) (count int) {
	t.Helper()
	for _, e := range cluster.Events(t, "NodePool", pool) {
		if strings.HasPrefix(e, "Warning HeadroomLost: ") {
			count++
		}
	}
	return count
}

// watchHeadroom watches a pool's condition Headroom. The returned function stops the watch, and
// fails the test if the condition has ever differed from its first version.
func watchHeadroom(t *testing.T, pool string) (assertSame func()) {
	t.Helper()
	want, err := headroom(t, pool)
	if err != nil {
		t.Fatal(err)
	}
	p := framework.Pool(pool)
	cluster.Refresh(t, p)
	stop := followPools(t, p.ResourceVersion)
	return func() {
		t.Helper()
		for _, c := range stop(pool) {
			if c != want {
				t.Errorf("the condition was %+v, and for a moment %+v", want, c)
			}
		}
	}
}

// TestHeadroomOutlivesManagers checks that neither a restarted manager nor a standby that takes
// over rewrites a condition that is still correct or repeats its event.
func TestHeadroomOutlivesManagers(t *testing.T) {
	elect := cluster.ElectUntilReleased(t)
	first := cluster.StartManager(t, elect...)
	w := twoNodes(t, "outlives", 3)
	w.askHeadroom(t, true, true)
	headroomBecomes(t, w.name, "NoPlace")
	cluster.EventuallyEvent(t, "NodePool", w.name, "Warning HeadroomLost: ")
	assertSame := watchHeadroom(t, w.name)

	second := cluster.StartManager(t, elect...)
	first.Kill(t)
	cluster.ExpireLease(t)
	evaluates(t, w, second)
	second.Kill(t)
	cluster.ExpireLease(t)
	third := cluster.StartManager(t, elect...)
	evaluates(t, w, third)

	assertSame()
	if count := lostEvents(t, w.name); count != 1 {
		t.Errorf("%d events HeadroomLost, want 1: %q", count, cluster.Events(t, "NodePool", w.name))
	}
	third.AssertSound(t)
}

// evaluates waits until a manager leads and has evaluated the headroom of a new pool. The manager
// has then also evaluated all existing pools.
func evaluates(t *testing.T, w *world, m *framework.Manager) {
	t.Helper()
	framework.Eventually(t, "the manager leads", func() error {
		metrics, err := m.TryMetrics()
		if err != nil {
			return err
		}
		if metrics.Sum("leader_election_master_status") != 1 {
			return errors.New("it does not")
		}
		return nil
	})
	probe := framework.Pool(fmt.Sprint(w.name, "-", time.Now().UnixNano()))
	pool := framework.Pool(w.name)
	cluster.Refresh(t, pool)
	probe.Spec.Selector, probe.Spec.Headroom = pool.Spec.Selector, pool.Spec.Headroom
	cluster.Apply(t, probe)
	headroomBecomes(t, probe.Name, "NoPlace")
	cluster.Delete(t, probe)
}

// TestHeadroomAfterLostEvents checks that the condition becomes correct once the manager learns of
// changes that it had missed because its watches were frozen or had lost events.
func TestHeadroomAfterLostEvents(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	manager := cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	w := twoNodes(t, "blind", 2)
	w.askHeadroom(t, true, true)
	headroomBecomes(t, w.name, "EnoughRoom")

	// Pods are created while their watch is frozen.
	proxy.Freeze(t, "match: {resources: [pods]}")
	w.scale(t, 3)
	proxy.Thaw(t)
	headroomBecomes(t, w.name, "NoPlace")

	// Nodes are created, and their events are lost until the manager lists the nodes again.
	proxy.Add(t, "rules: [{name: lost, match: {resources: [nodes]}, events: {types: [ADDED, MODIFIED, DELETED]}, fault: {kind: DropEvent}}]")
	w.addPlain(t, "blind-2", "blind-z2")
	w.addPlain(t, "blind-3", "blind-z3")
	proxy.AwaitFired(t, "lost", 2)
	proxy.Add(t, `rules: [{name: expired, match: {verbs: [watch], resources: [nodes]}, count: {times: 3}, fault: {kind: Error, code: 410, reason: Expired}}]`)
	proxy.Remove(t, "lost")
	proxy.Cut(t, "match: {resources: [nodes]}")
	proxy.AwaitFired(t, "expired", 1)
	headroomBecomes(t, w.name, "EnoughRoom")

	// The response to the condition's write is lost.
	proxy.Add(t, `rules: [{name: unheard, match: {verbs: [write], resources: [nodepools/status]}, count: {times: 2}, fault: {kind: LoseAnswer}}]`)
	for _, name := range []string{"blind-2", "blind-3"} {
		cluster.Delete(t, framework.Node(name))
	}
	headroomBecomes(t, w.name, "NoPlace")
	proxy.AwaitFired(t, "unheard", 1)
	proxy.Clear(t)
	cluster.EventuallyEvent(t, "NodePool", w.name, "Warning HeadroomLost: ")
	manager.AssertSound(t)
}

// testHeadroomAtRest checks that nothing is written at rest, and that pods that come and go without
// changing the result do not cause writes of the condition.
func testHeadroomAtRest(t *testing.T, manager *framework.Manager) {
	short, enough := twoNodes(t, "rest-short", 3), twoNodes(t, "rest-enough", 2)
	for _, w := range []*world{short, enough} {
		w.askHeadroom(t, true, true)
	}
	conditions := []metav1.Condition{headroomBecomes(t, short.name, "NoPlace"), headroomBecomes(t, enough.name, "EnoughRoom")}
	versions := func() (versions []string) {
		for _, w := range []*world{short, enough} {
			p := framework.Pool(w.name)
			cluster.Refresh(t, p)
			versions = append(versions, p.ResourceVersion)
		}
		return versions
	}
	framework.Eventually(t, "what follows the answer is written", func() error {
		for _, w := range []*world{short, enough} {
			p := framework.Pool(w.name)
			cluster.Refresh(t, p)
			if err := w.room(t).is(p.Status); err != nil {
				return err
			}
		}
		before := versions()
		time.Sleep(6 * time.Second) // sleep: longer than the interval between writes after an evaluation, and between evaluations
		if after := versions(); !slices.Equal(before, after) {
			return fmt.Errorf("%s, then %s", before, after)
		}
		return nil
	})
	before := versions()
	time.Sleep(12 * time.Second) // sleep: two evaluations, which should write nothing
	if after := versions(); !slices.Equal(before, after) {
		t.Errorf("pools are written at rest: %s, then %s", before, after)
	}

	assertSame := []func(){watchHeadroom(t, short.name), watchHeadroom(t, enough.name)}
	for range 3 {
		for _, w := range []*world{short, enough} {
			// These pods have no controller, so they would not be recreated after the loss of their
			// node.
			for i := range 2 {
				w.run(t, w.nodes[i].Name, list("memory", "10Mi"))
			}
		}
		time.Sleep(1500 * time.Millisecond) // sleep: so that several evaluations see different pods
	}
	for i, w := range []*world{short, enough} {
		framework.Eventually(t, "the pods are counted", func() error {
			p := framework.Pool(w.name)
			cluster.Refresh(t, p)
			return w.room(t).is(p.Status)
		})
		if c, err := headroom(t, w.name); err != nil || c != conditions[i] {
			t.Errorf("%v: the condition was %+v, and is %+v", err, conditions[i], c)
		}
		assertSame[i]()
		if count := lostEvents(t, w.name); count != 1-i {
			t.Errorf("%s has %d events", w.name, count)
		}
	}
	manager.AssertSound(t)
}

// TestHeadroomAfterOtherEdits checks that the condition is not missing for long after an edit of
// other fields of the pool, even if nothing else happens in the cluster.
func TestHeadroomAfterOtherEdits(t *testing.T) {
	cluster.StartManager(t)
	w := twoNodes(t, "other", 3)
	w.askHeadroom(t, true, true)
	headroomBecomes(t, w.name, "NoPlace")
	pool := framework.Pool(w.name)
	cluster.Change(t, pool, func() {
		pool.Spec.Annotations = map[string]tidekeeperv1.AnnotationValue{"example.com/edited": "yes"}
	})
	framework.EventuallyWithin(t, 4*framework.Patience, "the present spec is looked at", func() error {
		c, err := headroom(t, w.name)
		if err == nil && c.Reason != "NoPlace" {
			err = fmt.Errorf("%+v", c)
		}
		return err
	})
}
