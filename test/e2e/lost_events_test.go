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

// A watch that expires is opened again after a list, without the events in between. An
// object that was deleted and created again then looks like a changed one, and a
// deleted one is gone in the last version that was known. However that coincides with
// the manager's own writes, the same process applies the next edit.

// expire makes the watch of a resource expire at the next DELETED event, and blocks a
// new one until the returned function is called.
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

// away answers lists and watches of a resource with 503 until the returned function is
// called. Open watches stay open.
func away(t *testing.T, proxy *framework.Proxy, resource string) (back func()) {
	t.Helper()
	proxy.Add(t, fmt.Sprintf("rules: [{name: away, match: {verbs: [list, watch], resources: [%s]}, fault: {kind: Error, code: 503}}]", resource))
	return func() { t.Helper(); proxy.Remove(t, "away") }
}

func runtimeClassOf(pool string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: tidekeeperv1.RuntimeClassPrefix + pool}}
}

// eventuallyHandler waits until the RuntimeClass of a pool has the handler.
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

// The RuntimeClass is replaced, but its watch never reports that.
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

	// The same process continues to work: for this pool, and for another.
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

// The finalizer of a pool that is being deleted is removed, and the manager learns that
// the pool is gone from a list.
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

	// No client writes a NodePool, but work for another pool is done.
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

// The opt-in deletes its ScheduledRestart, and a user creates one with the same name
// while the watch is blocked.
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

	// The user's own is reconciled, and the next opt-in takes effect.
	cluster.Change(t, w, func() { w.SetAnnotations(map[string]string{"example.com/edit": "1"}) })
	cluster.Change(t, r, func() { r.Spec.Schedule = "0 4 * * *" })
	eventuallyRestart(t, r, framework.Patience, "has seen its edit", func() error { return diff(r.Generation, r.Status.ObservedGeneration) })
	next := optInWorkload("Deployment", "lost-opt-in-next", optInKey, "true")
	cluster.Apply(t, next)
	eventuallyOptIn(t, next.GetName(), wanted{Suspend: true})
	manager.AssertIdle(t)
}

// A Freeze is lifted, and its watch never reports that: what it held back starts all the same.
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
	// After a minute the manager asks whether the Freeze still exists.
	clock.Set(t, now.Add(time.Minute))
	eventuallyRestart(t, r, framework.Patience, "is restarted", func() error { return diff(1, len(r.Status.History)) })
	if got := r.Status.History[0].Outcome; got != tidekeeperv1.OutcomeSucceeded {
		t.Errorf("the outcome is %s", got)
	}
}

// A rollout is complete, and the watch of Deployments never reports that: the restart is no failure at its
// deadline.
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

// If the API server never answers a request, its object is delayed until the deadline,
// but no other object is.
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
	// On a machine that stops for some seconds, others hit it as well.
	if got := manager.ReadMetrics(t).Sum("controller_runtime_reconcile_timeouts_total"); got < 1 {
		t.Error("no reconcile has hit the deadline")
	}
	manager.AssertIdle(t)
}
