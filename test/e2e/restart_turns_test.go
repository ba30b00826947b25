// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// queue is a namespace with Deployments whose pods have a readiness gate, and a ScheduledRestart
// for each Deployment. The restarts complete only when the test opens the gates.
type queue struct {
	namespace string
	restarts  []*tidekeeperv1.ScheduledRestart
}

func newQueue(t *testing.T, namespace string, length int) *queue {
	t.Helper()
	q := &queue{namespace: namespace}
	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for i := range length {
		d := deployment(fmt.Sprintf("%s-%d", namespace, i), 1, *app.DeepCopy())
		d.Namespace, d.Spec.Template.Spec.ReadinessGates = namespace, []corev1.PodReadinessGate{{ConditionType: framework.Gate}}
		cluster.Apply(t, d)
		framework.Eventually(t, d.Name+" is rolled out", func() error {
			cluster.OpenGate(t, namespace, d.Name)
			cluster.Refresh(t, d)
			return diff(int32(1), d.Status.AvailableReplicas)
		})
		r := restartOf("Deployment", d.Name)
		r.Namespace, r.Spec.StartingDeadlineSeconds = namespace, 86400
		cluster.Apply(t, r)
		q.restarts = append(q.restarts, r)
	}
	return q
}

// asks requests all of the namespace's restarts, and waits until the given number of them wait for
// a slot.
func (q *queue) asks(t *testing.T, waiting int) {
	t.Helper()
	for _, r := range q.restarts {
		cluster.RequestRestart(t, r, time.Now())
	}
	framework.Eventually(t, fmt.Sprintf("%d restarts of %s wait for a slot", waiting, q.namespace), func() error {
		if got := q.waiting(t); len(got) != waiting {
			return fmt.Errorf("%d do", len(got))
		}
		return nil
	})
}

// waiting returns the status messages of the restarts that wait for a slot.
func (q *queue) waiting(t *testing.T) (messages []string) {
	t.Helper()
	for _, r := range q.restarts {
		cluster.Refresh(t, r)
		ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady)
		if ready != nil && ready.Reason == tidekeeperv1.ReasonBudgetExhausted && r.Status.Active == nil {
			messages = append(messages, ready.Message)
		}
	}
	return messages
}

// eventuallyInProgress waits until one restart in the given namespaces is in progress, and returns
// it with its namespace. It fails the test if two restarts are in progress.
func eventuallyInProgress(t *testing.T, queues ...*queue) (in *queue, active *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	framework.Eventually(t, "a restart is in progress", func() error {
		active = nil
		for _, q := range queues {
			list := &tidekeeperv1.ScheduledRestartList{}
			if err := cluster.List(t.Context(), list, client.InNamespace(q.namespace)); err != nil {
				return err
			}
			for i := range list.Items {
				if r := &list.Items[i]; r.Status.Active != nil && active != nil {
					return fmt.Errorf("%s and %s are", r.Name, active.Name)
				} else if r.Status.Active != nil {
					in, active = q, r
				}
			}
		}
		if active == nil {
			return errors.New("none is")
		}
		return nil
	})
	return in, active
}

// letGo opens the readiness gates of the pods that a restart creates, until the restart has
// succeeded.
func letGo(t *testing.T, r *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	eventuallyRestart(t, r, framework.Patience, "has succeeded", func() error {
		cluster.OpenGate(t, r.Namespace, r.Name)
		if len(r.Status.History) == 0 || r.Status.History[0].Outcome != tidekeeperv1.OutcomeSucceeded {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
}

// passes returns a line for each namespace that had to wait for two restarts of the same other
// namespace. `starts` lists the namespaces of the restarts in starting order; `waiting` counts the
// waiting restarts of each namespace.
func passes(starts []string, waiting map[string]int) (problems []string) {
	passed := map[string]map[string]int{}
	for namespace := range waiting {
		passed[namespace] = map[string]int{}
	}
	for i, started := range starts {
		waiting[started]--
		passed[started] = map[string]int{}
		for namespace, by := range passed {
			if waiting[namespace] == 0 || namespace == started {
				continue
			}
			if by[started]++; by[started] > 1 {
				problems = append(problems, fmt.Sprintf("at start %d, %s has waited for two of %s", i+1, namespace, started))
			}
		}
	}
	return problems
}

// TestSlotsGoRoundNamespaces checks that a namespace waits for at most one restart of each other
// namespace, regardless of how many restarts wait there, and that the metrics count the waiting
// restarts. A namespace must never have more than its share of the slots, even if others are free.
func TestSlotsGoRoundNamespaces(t *testing.T) {
	cluster.AddNodes(t, "round", 1)
	args := []string{"--max-concurrent-restarts=1", "--restart-namespace-share=100", "--restart-slot-age=24h"}
	t.Run("one after the other", func(t *testing.T) {
		manager := cluster.StartManager(t, args...)
		long, middle, short := newQueue(t, "round-long", 4), newQueue(t, "round-middle", 3), newQueue(t, "round-short", 1)
		queues := []*queue{long, middle, short}
		waiting := map[string]int{}
		for _, q := range queues {
			waiting[q.namespace] = len(q.restarts)
			if q == long {
				waiting[q.namespace]--
			}
			q.asks(t, waiting[q.namespace])
		}
		framework.Eventually(t, "the metrics have the slot that is in use, and those that wait", func() error {
			metrics := manager.ReadMetrics(t)
			return diff([]float64{1, 1, 7}, []float64{metrics.Sum("tidekeeper_restart_budget"), metrics.Sum("tidekeeper_restart_active"), metrics.Sum("tidekeeper_restart_waiting_for_budget")})
		})
		var starts []string
		for range 8 {
			q, r := eventuallyInProgress(t, queues...)
			starts = append(starts, q.namespace)
			letGo(t, r)
		}
		// The first restart was started before any other namespace waited.
		for _, problem := range passes(starts[1:], waiting) {
			t.Errorf("%s: the starts were %q", problem, starts)
		}
		framework.Eventually(t, "no restart waits", func() error {
			metrics := manager.ReadMetrics(t)
			return diff([]float64{0, 0}, []float64{metrics.Sum("tidekeeper_restart_active"), metrics.Sum("tidekeeper_restart_waiting_for_budget")})
		})
	})
	t.Run("whichever manager leads", func(t *testing.T) {
		manager := cluster.StartManager(t, args...)
		long, short := newQueue(t, "heirs-long", 4), newQueue(t, "heirs-short", 1)
		long.asks(t, 3)
		short.asks(t, 1)
		var starts []string
		for !slices.Contains(starts, short.namespace) {
			q, r := eventuallyInProgress(t, long, short)
			starts = append(starts, q.namespace)
			manager.Kill(t)
			// The rollout completes while no manager is running, so the next manager finds a free
			// slot, regardless of which restart it reconciles first.
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
			framework.Eventually(t, r.Name+" is rolled out", func() error {
				cluster.OpenGate(t, r.Namespace, r.Name)
				cluster.Refresh(t, d)
				return diff([]int32{1, 1, 1}, []int32{d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.Replicas})
			})
			manager = cluster.StartManager(t, args...)
			letGo(t, r)
		}
		if len(starts) > 2 {
			t.Errorf("the only restart of a namespace has waited for %q", starts[:len(starts)-1])
		}
		for len(long.waiting(t)) > 0 {
			_, r := eventuallyInProgress(t, long)
			letGo(t, r)
		}
	})
	t.Run("share", func(t *testing.T) {
		manager := cluster.StartManager(t, "--max-concurrent-restarts=3", "--restart-namespace-share=34", "--restart-slot-age=24h")
		long, short := newQueue(t, "share-long", 3), newQueue(t, "share-short", 1)
		long.asks(t, 2)
		for _, message := range long.waiting(t) {
			if want := "this namespace's share of the restart budget is used up: 1 of 3 slots; a slot is free again when one of these restarts ends, or has taken 24h0m0s"; !strings.HasSuffix(message, want) {
				t.Errorf("a restart that waits for the share of its namespace says %q, want %q", message, want)
			}
		}
		short.asks(t, 0)
		_, first := eventuallyInProgress(t, long)
		_, beside := eventuallyInProgress(t, short)
		manager.AssertIdle(t)
		framework.Eventually(t, "the metrics have the slots, those in use, and the restarts that wait", func() error {
			metrics := manager.ReadMetrics(t)
			return diff([]float64{3, 2, 2}, []float64{metrics.Sum("tidekeeper_restart_budget"), metrics.Sum("tidekeeper_restart_active"), metrics.Sum("tidekeeper_restart_waiting_for_budget")})
		})
		letGo(t, beside)
		letGo(t, first)
	})
}

// TestSlotOfANamespaceWithoutRequests checks that a namespace that has used up its budget of API
// requests releases its slot in time, although its reconciles are deferred. The metrics must name
// only the namespaces that used up their budget in the last five minutes.
func TestSlotOfANamespaceWithoutRequests(t *testing.T) {
	const slotAge = 30 * time.Second
	installSquads(t)
	cluster.AddNodes(t, "spent", 1)
	hog, modest := newQueue(t, "spent-hog", 1), newQueue(t, "spent-modest", 1)
	allowSquads(t, hog.namespace)
	clock := framework.NewStandingClock(t, time.Now().Add(time.Hour).Truncate(time.Second))
	manager := cluster.WithClocks(t).StartManager(t, clock.Flag(), fmt.Sprint("--restart-concurrency=", fairWorkers), "--namespace-requests-per-second=1",
		"--namespace-requests-burst=100", "--max-concurrent-restarts=1", "--restart-namespace-share=100", fmt.Sprint("--restart-slot-age=", slotAge))
	hog.asks(t, 0)
	_, holder := eventuallyInProgress(t, hog)

	// Each ScheduledRestart costs a read of a missing scale subresource, and a status write that
	// reports it.
	for i := range greed {
		r := ofSquad(evictionOf("Squad", fmt.Sprintf("spent-%03d", i)))
		r.Namespace, r.Spec.StartingDeadlineSeconds = hog.namespace, 86400
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, tidekeeperv1.RestartNowAnnotation, time.Now().UTC().Format(time.RFC3339))
		cluster.Apply(t, r)
	}
	deferred := func(namespace string) float64 {
		return manager.ReadMetrics(t).SumOf("tidekeeper_namespace_deferred_reconciles", "namespace", namespace)
	}
	framework.EventuallyWithin(t, 3*framework.Patience, "reconciles of the namespace are put off", func() error {
		if deferred(hog.namespace) == 0 {
			return errors.New("none is")
		}
		return nil
	})
	modest.asks(t, 1)
	// Once a request is reported as having missed its deadline, the manager has seen the new time.
	missed := restartOf("Deployment", "spent-missed")
	missed.Spec.StartingDeadlineSeconds = int32(slotAge.Seconds()) - 2
	cluster.Apply(t, missed)
	eventuallyRestartIs(t, missed, "TargetNotFound")
	tick := cluster.RequestRestart(t, missed, clock.Now(t))
	clock.Set(t, clock.Now(t).Add(slotAge-time.Second))
	eventuallyOutcome(t, missed, tick, tidekeeperv1.OutcomeMissed, "TargetNotFound")
	if len(modest.waiting(t)) != 1 {
		t.Errorf("a restart that is younger than its slot has lost it: %+v", modest.restarts[0].Status)
	}
	clock.Set(t, clock.Now(t).Add(time.Second))
	_, beside := eventuallyInProgress(t, modest)
	if cluster.Refresh(t, holder); holder.Status.Active == nil {
		t.Errorf("the restart that has outlived its slot does not continue: %+v", holder.Status)
	}
	if n := deferred(modest.namespace); n > 0 {
		t.Errorf("%g reconciles of the other namespace were put off", n)
	}
	letGo(t, beside)

	if err := cluster.DeleteAllOf(t.Context(), &tidekeeperv1.ScheduledRestart{}, client.InNamespace(hog.namespace)); err != nil {
		t.Fatal(err)
	}
	// A reconcile that runs while the clock is advanced counts as ten minutes long. After the first
	// advance, the namespace has API requests again. Reconciles that were deferred before may still run
	// during later advances, until none is left.
	clock.Set(t, clock.Now(t).Add(10*time.Minute))
	manager.AssertIdle(t)
	framework.Eventually(t, "the metrics have no more about that namespace", func() error {
		clock.Set(t, clock.Now(t).Add(10*time.Minute))
		metrics := manager.ReadMetrics(t)
		for _, name := range []string{"requests", "worker_seconds", "deferred_reconciles"} {
			if value := metrics.SumOf("tidekeeper_namespace_"+name, "namespace", hog.namespace); value != 0 {
				return fmt.Errorf("tidekeeper_namespace_%s is %g", name, value)
			}
		}
		return nil
	})
}
