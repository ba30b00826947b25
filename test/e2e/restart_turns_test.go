// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// queue is a namespace with Deployments whose restarts take until the test lets them go, and a
// ScheduledRestart for each.
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

// asks requests all restarts of the namespace, and waits until that many of them wait for a slot.
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

// waiting returns what the restarts say that wait for a slot.
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

// eventuallyInProgress waits until a restart of one of the namespaces is in progress, and fails the
// test if two are.
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

// letGo lets a restart be complete.
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

// A namespace that has used up its requests to the API server gives its slot back when the clock
// says so, although it may not work then; and the metrics say whose requests were used up in the
// last five minutes, and no longer.
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

	// Each costs a read of a scale that is not there, and a write that says so.
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
	// The manager has looked at the clock when a request has missed its deadline.
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
	clock.Set(t, clock.Now(t).Add(10*time.Minute))
	framework.Eventually(t, "the metrics have no more about that namespace", func() error {
		metrics := manager.ReadMetrics(t)
		for _, name := range []string{"requests", "worker_seconds", "deferred_reconciles"} {
			if value := metrics.SumOf("tidekeeper_namespace_"+name, "namespace", hog.namespace); value != 0 {
				return fmt.Errorf("tidekeeper_namespace_%s is %g", name, value)
			}
		}
		return nil
	})
}
