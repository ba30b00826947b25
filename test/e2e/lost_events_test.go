// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// After an expired watch, client-go lists the objects again, and the events in between are lost. An
// object that was deleted and recreated then looks like an update, and the last known version of a
// deleted object is outdated. Regardless of how this coincides with the manager's own writes, the
// same manager process must apply the next edit.

// expire makes the watch of a resource expire at the next DELETED event. The returned function
// waits until the watch has expired, and removes the fault rule.
func expire(t *testing.T, proxy *framework.Proxy, resource string) (back func()) {
	t.Helper()
	proxy.Add(t, fmt.Sprintf(`rules:
- {name: expire, match: {resources: [%[1]s]}, events: {types: [DELETED]}, count: {times: 1}, fault: {kind: ExpireWatch}}`, resource))
	return func() {
		t.Helper()
		proxy.AwaitFired(t, "expire", 1)
		proxy.Remove(t, "expire")
	}
}

// away makes lists and new watches of a resource fail with 503 until the returned function is
// called. Open watches stay open.
func away(t *testing.T, proxy *framework.Proxy, resource string) (back func()) {
	t.Helper()
	proxy.Add(t, fmt.Sprintf("rules: [{name: away, match: {verbs: [list, watch], resources: [%s]}, fault: {kind: Error, code: 503}}]", resource))
	return func() { t.Helper(); proxy.Remove(t, "away") }
}

func runtimeClassOf(pool string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: tidekeeperv1.RuntimeClassPrefix + pool}}
}

// eventuallyHandler waits until a pool's RuntimeClass has the given handler.
func eventuallyHandler(t *testing.T, pool, handler string) {
	t.Helper()
	framework.Eventually(t, "the RuntimeClass of pool "+pool+" has the handler "+handler, func() error {
		class := runtimeClassOf(pool)
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err
		}
		return diff(handler, class.Handler)
	})
}

// TestLostEvents_RuntimeClassReplaced replaces a pool's RuntimeClass without an event to the
// manager.
func TestLostEvents_RuntimeClassReplaced(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	manager := cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	addMembers(t, "lost-rc", 1)
	p := pool("lost-rc")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	healthyWith(t, "lost-rc", 1)
	eventuallyHandler(t, "lost-rc", "runc")

	expired := expire(t, proxy, "runtimeclasses.node.k8s.io")
	cluster.Change(t, p, func() { p.Spec.Handler = "kata" })
	expired()
	eventuallyHandler(t, "lost-rc", "kata")

	// The same manager process continues to work, both for this pool and for another pool.
	cluster.Change(t, p, func() { p.Spec.Labels["example.com/lost-rc"] = "20" })
	framework.Eventually(t, "an edit takes effect", func() error {
		return diff("20", shapeOf(t, "lost-rc-1").Labels["example.com/lost-rc"])
	})
	cluster.Change(t, p, func() { p.Spec.Handler = "runc" })
	eventuallyHandler(t, "lost-rc", "runc")
	cluster.Apply(t, pool("lost-rc-b"))
	eventuallyReason(t, "lost-rc-b", "NoNodes")
	manager.AssertIdle(t)
}

// TestLostEvents_PoolGone removes the finalizer of a pool that is being deleted, so that the
// manager learns of the pool's deletion only from a list.
func TestLostEvents_PoolGone(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	manager := cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	other := pool("lost-other")
	other.Spec.Handler = "runc"
	cluster.Apply(t, other)
	eventuallyReason(t, "lost-other", "NoNodes")
	eventuallyHandler(t, "lost-other", "runc")
	p := pool("lost-pool")
	cluster.Apply(t, p)
	eventuallyReason(t, "lost-pool", "NoNodes")

	expired := expire(t, proxy, "nodepools.tidekeeper.dev")
	cluster.Delete(t, p)
	eventuallyGone(t, p)
	expired()
	framework.Eventually(t, "the manager has learned that the pool is gone", func() error {
		for _, metric := range manager.ReadMetrics(t)["tidekeeper_nodepool_ready"].GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == "lost-pool" {
					return errors.New("it still has a metric")
				}
			}
		}
		return nil
	})

	// Even if no NodePool is written, the manager continues to work: it restores another pool's
	// RuntimeClass.
	class := runtimeClassOf("lost-other")
	cluster.Refresh(t, class)
	uid := class.UID
	cluster.Delete(t, class)
	framework.Eventually(t, "the RuntimeClass is created again", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err
		}
		if class.UID == uid {
			return errors.New("it is the same")
		}
		return nil
	})
	manager.AssertIdle(t)
}

// TestLostEvents_OptInReplacedByAPerson lets the opt-in delete its ScheduledRestart. While the
// watch is blocked, a user creates another ScheduledRestart with the same name.
func TestLostEvents_OptInReplacedByAPerson(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	manager := cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	w := optInWorkload("Deployment", "lost-opt-in", optInKey, "true")
	cluster.Apply(t, w)
	eventuallyOptIn(t, w.GetName(), wanted{Suspend: true})

	expired := expire(t, proxy, "scheduledrestarts.tidekeeper.dev")
	back := away(t, proxy, "scheduledrestarts.tidekeeper.dev")
	cluster.Change(t, w, func() { w.SetAnnotations(nil) })
	expired()
	eventuallyGone(t, framework.ScheduledRestart("lost-opt-in"))
	r := restartOf("Deployment", "lost-opt-in")
	cluster.Apply(t, r)
	back()
	eventuallyRestart(t, r, framework.Patience, "is seen", func() error { return diff(r.Generation, r.Status.ObservedGeneration) })

	// The user's ScheduledRestart is reconciled, and the next opt-in takes effect.
	cluster.Change(t, w, func() { w.SetAnnotations(map[string]string{"example.com/edit": "1"}) })
	cluster.Change(t, r, func() { r.Spec.Schedule = "0 4 * * *" })
	eventuallyRestart(t, r, framework.Patience, "has seen its edit", func() error { return diff(r.Generation, r.Status.ObservedGeneration) })
	next := optInWorkload("Deployment", "lost-opt-in-next", optInKey, "true")
	cluster.Apply(t, next)
	eventuallyOptIn(t, next.GetName(), wanted{Suspend: true})
	manager.AssertIdle(t)
}

// TestLostEvents_FreezeLifted lifts a Freeze without an event to the manager, and checks that the
// held-back restarts start nevertheless.
func TestLostEvents_FreezeLifted(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	now := time.Now().Add(10 * time.Minute).Truncate(time.Second)
	clock := framework.NewStandingClock(t, now)
	cluster.WithClocks(t).StartManager(t, "--kubeconfig", proxy.Kubeconfig, clock.Flag())
	cluster.AddNodes(t, "lost-freeze", 1)
	workload(t, "Deployment", "lost-freeze")
	r := suspendedRestart(t, "lost-freeze")
	f := freeze("lost-freeze")
	cluster.Apply(t, f)
	eventuallyFreezeIs(t, f, "InForce")
	cluster.RequestRestart(t, r, now)
	isFrozen(t, r, f)

	proxy.Add(t, "rules: [{name: lost, match: {resources: [freezes.tidekeeper.dev]}, events: {types: [DELETED]}, fault: {kind: DropEvent}}]")
	cluster.Delete(t, f)
	proxy.AwaitFired(t, "lost", 1)
	// After a minute the manager checks with the API server that the Freeze still exists.
	clock.Set(t, now.Add(time.Minute))
	eventuallyRestart(t, r, framework.Patience, "is restarted", func() error { return diff(1, len(r.Status.History)) })
	if got := r.Status.History[0].Outcome; got != tidekeeperv1.OutcomeSucceeded {
		t.Errorf("the outcome is %s", got)
	}
}

// TestLostEvents_RolloutComplete completes a rollout without an event about the Deployment, and
// checks that the restart does not fail at its deadline.
func TestLostEvents_RolloutComplete(t *testing.T) {
	const name, deadline = "lost-rollout", time.Minute
	proxy := cluster.StartProxy(t, "")
	clock := framework.NewStandingClock(t, time.Now().Add(10*time.Minute).Truncate(time.Second))
	cluster.WithClocks(t).StartManager(t, "--kubeconfig", proxy.Kubeconfig, clock.Flag())
	cluster.AddNodes(t, name, 1)
	d := deployment(name, 1, *app.DeepCopy())
	d.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: framework.Gate}}
	cluster.Apply(t, d)
	isComplete := func() error {
		cluster.OpenGate(t, d.Namespace, name)
		cluster.Refresh(t, d)
		status := d.Status
		return diff([]any{d.Generation, int32(1), int32(1), int32(1)}, []any{status.ObservedGeneration, status.Replicas, status.UpdatedReplicas, status.AvailableReplicas})
	}
	framework.Eventually(t, "it is rolled out", isComplete)
	r := restartOf("Deployment", name)
	r.Spec.ProgressDeadlineSeconds = int32(deadline / time.Second)
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	tick := cluster.RequestRestart(t, r, clock.Now(t))
	framework.Eventually(t, "the restart is sent", func() error { return diff(tick.Format(time.RFC3339), restartedAt(t, d)) })
	proxy.Freeze(t, "match: {resources: [deployments.apps]}")
	framework.Eventually(t, "the rollout is complete", isComplete)
	clock.Set(t, clock.Now(t).Add(deadline+time.Second))
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
}

// TestLostEvents_AnswerThatNeverComes checks that a request that gets no response delays only its
// own object, until the request times out.
func TestLostEvents_AnswerThatNeverComes(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	manager := cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig, "--reconcile-timeout=5s")
	p, next := pool("lost-answer"), pool("lost-answer-next")
	cluster.Apply(t, p)
	eventuallyReason(t, "lost-answer", "NoNodes")
	proxy.Add(t, "rules: [{name: swallow, match: {verbs: [patch], resources: [nodepools.tidekeeper.dev/status], names: [lost-answer]}, count: {times: 1}, fault: {kind: Hang}}]")
	cluster.Change(t, p, func() { p.Spec.Labels["example.com/lost-answer"] = "20" })
	proxy.AwaitFired(t, "swallow", 1)
	cluster.Apply(t, next)
	eventuallyReason(t, "lost-answer-next", "NoNodes")
	framework.Eventually(t, "the edit takes effect", func() error {
		cluster.Refresh(t, p)
		return diff(p.Generation, p.Status.ObservedGeneration)
	})
	// Other reconciles may time out as well if the machine stalls for some seconds.
	if got := manager.ReadMetrics(t).Sum("controller_runtime_reconcile_timeouts_total"); got < 1 {
		t.Error("no reconcile has hit the deadline")
	}
	manager.AssertIdle(t)
}
