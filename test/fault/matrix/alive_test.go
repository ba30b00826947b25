// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// unexplained is how many reconciles of a run may fail without a failed request, as
// when a deadline expires while a watch is frozen.
const unexplained = 4

// stillAlive makes users request one more change of each kind, which the running
// managers must carry out, and then checks that they become idle: nothing is queued,
// no worker is busy, and nothing fails.
func (w *scenarioRun) stillAlive(s scenario, before map[*framework.Manager]int) {
	w.Helper()
	survivors := w.running()
	if len(survivors) == 0 {
		w.Fatal("still alive: no manager is running")
	}
	s.again(w)
	for _, m := range survivors {
		if !m.Running() {
			w.Error("still alive: the manager has ended")
			continue
		}
		framework.Eventually(w, "still alive: the manager becomes idle", func() error {
			metrics, err := m.TryMetrics()
			if err != nil {
				return err
			}
			return metrics.AtRest()
		})
		m.AssertSound(w)
	}
	w.noErrorLoop(survivors, before)
}

// running returns the running managers.
func (w *scenarioRun) running() []*framework.Manager {
	var running []*framework.Manager
	for _, m := range []*framework.Manager{w.manager, w.other} {
		if m != nil && m.Running() {
			running = append(running, m)
		}
	}
	return running
}

// errorsBefore returns how often reconciles of the running managers have failed.
func (w *scenarioRun) errorsBefore() map[*framework.Manager]int {
	errors := map[*framework.Manager]int{}
	for _, m := range w.running() {
		errors[m] = m.ReadMetrics(w).Errors()
	}
	return errors
}

// noErrorLoop fails the test if more reconciles than requests have failed, or if
// reconciles fail while nothing happens.
func (w *scenarioRun) noErrorLoop(managers []*framework.Manager, before map[*framework.Manager]int) {
	w.Helper()
	failed := 0
	for _, m := range managers {
		failed += m.ReadMetrics(w).Errors() - before[m]
	}
	if most := failedRequests(w.passed()) + unexplained; failed > most {
		w.Errorf("error loop: %d reconciles have failed, want at most %d", failed, most)
	}
}

// again waits for a change that users requested after the end of the scenario.
func (w *scenarioRun) again(what string, check func() error) {
	w.Helper()
	framework.EventuallyWithin(w, w.patience, "still alive: "+what, check)
}

// poolAgain edits every pool, or creates one if there is none, edits a node by hand,
// removes the node from the pool and adds it again. The first node is in the pool,
// whatever the scenario did.
func poolAgain(w *scenarioRun) {
	pool := framework.Pool(w.name)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(pool), pool); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	} else if err != nil {
		w.Apply(w, w.pool(""))
	}
	const key = "example.com/alive"
	w.Change(w, pool, func() {
		pool.Spec.Labels[key], pool.Spec.Handler = "1", "alive"
		pool.Spec.Annotations[key] = "1"
	})
	shaped := func() error {
		class := runtimeClass(w.name)
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err
		}
		if class.Handler != "alive" {
			return fmt.Errorf("the handler of its RuntimeClass is %s", class.Handler)
		}
		node := framework.Node(w.node(1))
		w.Refresh(w, node)
		if node.Labels[key] != "1" || node.Annotations[key] != "1" {
			return fmt.Errorf("node %s has labels %v and annotations %v", node.Name, node.Labels, node.Annotations)
		}
		return w.poolHasNodes()
	}
	w.again("the pool is edited once more", shaped)
	node := framework.Node(w.node(1))
	w.Change(w, node, func() { node.Labels[key] = "by-hand" })
	w.again("the node is edited by hand once more", shaped)
	// Outside the pool the node is clean, and back in the pool it has everything.
	w.relabel(node.Name, role(w.name), nil)
	w.again("the node leaves the pool once more", func() error {
		if w.Refresh(w, node); node.Labels[key] != "" || node.Annotations[key] != "" {
			return fmt.Errorf("node %s has labels %v and annotations %v", node.Name, node.Labels, node.Annotations)
		}
		return nil
	})
	w.relabel(node.Name, role(w.name), new(string))
	w.again("the node joins the pool once more", shaped)
	second := framework.Pool(w.name + "-b")
	if w.Get(w.Context(), client.ObjectKeyFromObject(second), second) != nil {
		return
	}
	w.Change(w, second, func() { second.Spec.Labels["example.com/alive-b"] = "1" })
	w.again("the other pool is edited once more", func() error {
		w.Refresh(w, second)
		ready := readyOf(second.Status.Conditions)
		if ready == nil || ready.ObservedGeneration != second.Generation {
			return errors.New("its status is of an older generation")
		}
		return nil
	})
}

// poolHasNodes returns nil if the pool has nodes, and is healthy.
func (w *scenarioRun) poolHasNodes() error {
	p := framework.Pool(w.name)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	if p.Status.NodeCount == 0 {
		return fmt.Errorf("pool %s has no nodes", p.Name)
	}
	return framework.ReadyIs(p.Status.Conditions, p.Generation, "Healthy")
}

func readyOf(conditions []metav1.Condition) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == "Ready" {
			return &conditions[i]
		}
	}
	return nil
}

// restartAgain edits the schedule and requests one more restart.
func restartAgain(w *scenarioRun) { w.restartOnceMore(w.name) }

func (w *scenarioRun) restartOnceMore(name string) {
	r := framework.ScheduledRestart(name)
	tick := time.Now().Truncate(time.Second).UTC()
	if !tick.After(w.tick) {
		tick = w.tick.Add(time.Second)
	}
	w.Change(w, r, func() {
		r.Spec.HistoryLimit = 9
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, tidekeeperv1.RestartNowAnnotation, tick.Format(time.RFC3339))
	})
	w.tick = tick
	w.again("one more restart", func() error {
		w.Refresh(w, r)
		ready := readyOf(r.Status.Conditions)
		switch {
		case ready == nil || ready.ObservedGeneration != r.Generation:
			return errors.New("its status is of an older generation")
		case len(r.Status.History) == 0 || !r.Status.History[0].ScheduledTime.Time.Equal(tick):
			return fmt.Errorf("tick %s is not on record: %s: %s", tick.Format(time.RFC3339), ready.Reason, ready.Message)
		case r.Status.History[0].Outcome != tidekeeperv1.OutcomeSucceeded:
			w.Errorf("still alive: the restart has %s: %s", r.Status.History[0].Outcome, r.Status.History[0].Message)
		}
		return nil
	})
}

// optInAgain opts the workload in, which it creates again if it is gone, and then out.
func optInAgain(w *scenarioRun) {
	d := framework.Deployment(w.name, 2, framework.App)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(d), d); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	} else if err != nil {
		w.Apply(w, d)
	}
	w.Change(w, d, func() { metav1.SetMetaDataAnnotation(&d.ObjectMeta, tidekeeperv1.OptInAnnotation, "true") })
	w.again("one more opt-in", func() error {
		r := framework.ScheduledRestart(w.name)
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if readyOf(r.Status.Conditions) == nil {
			return errors.New("its ScheduledRestart has no condition yet")
		}
		return nil
	})
	w.Change(w, d, func() { delete(d.Annotations, tidekeeperv1.OptInAnnotation) })
	w.again("one more opt-in is taken back", func() error { return w.isGone(framework.ScheduledRestart(w.name)) })
}

func TestFailedRequests(t *testing.T) {
	passed := []framework.Passed{
		{Verb: "patch", Status: 200, Upstream: 200}, {Verb: "patch", Status: 409, Upstream: 409},
		{Verb: "patch", Upstream: 200, Fault: "LoseAnswer"}, {Verb: "watch", Status: 200, Event: "MODIFIED", Fault: "DropEvent"},
	}
	if got := failedRequests(passed); got != 2 {
		t.Errorf("%d requests have failed, want 2", got)
	}
}
