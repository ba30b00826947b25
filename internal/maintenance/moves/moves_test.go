// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

var now = time.Date(2026, time.June, 9, 12, 0, 0, 0, time.UTC)

// pod returns a ready pod of the Deployment web.
func pod(change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", UID: "1", Labels: map[string]string{"app": "web", "pod-template-hash": "7d9f"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d9f", UID: "rs", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	change(&p)
	return p
}

// withBudget adds a PodDisruptionBudget for the pods, all of which are healthy.
func withBudget(expected, desired int32) func(*Input) {
	return func(in *Input) {
		in.Budgets = []policyv1.PodDisruptionBudget{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: expected, DesiredHealthy: desired, CurrentHealthy: expected, DisruptionsAllowed: expected - desired},
		}}
	}
}

func deployment(replicas, ready int32, change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: appsv1.DeploymentStatus{ReadyReplicas: ready}}
	change(d)
	return d
}

// TestDecide checks how a pod leaves its node, by eviction or by a restart, and the reason if it
// stays.
func TestDecide(t *testing.T) {
	same, sameDeployment := func(*corev1.Pod) {}, func(*appsv1.Deployment) {}
	for _, tc := range []struct {
		name    string
		pod     func(*corev1.Pod)
		of      *appsv1.Deployment
		in      func(*Input)
		how     string // evict, restart, stay or none
		reason  string
		message string
	}{
		{name: "one of several replicas", pod: same, of: deployment(3, 3, sameDeployment), how: "evict"},
		{name: "the only replica", pod: same, of: deployment(1, 1, sameDeployment), how: "restart"},
		{name: "the only ready replica", pod: same, of: deployment(3, 1, sameDeployment), how: "restart"},
		{name: "the only replica, without surge", pod: same, of: deployment(1, 1, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }), how: "evict"},
		{name: "the only replica, paused", pod: same, of: deployment(1, 1, func(d *appsv1.Deployment) { d.Spec.Paused = true }), how: "evict"},
		{name: "the only replica, which may be unavailable", pod: same, of: deployment(1, 1, func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(1))}
		}), how: "evict"},
		{name: "all of four replicas, of which one may be unavailable", pod: same, of: deployment(4, 1, sameDeployment), how: "restart"},
		{name: "one of four replicas, whose budget never allows it", pod: same, of: deployment(4, 4, sameDeployment), in: withBudget(4, 4), how: "evict"},
		{name: "all replicas, all of which may be unavailable", pod: same, of: deployment(4, 1, func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromString("100%"))}
		}), how: "evict"},
		{name: "the only replica, to be evicted", pod: same, of: deployment(1, 1, sameDeployment), in: func(in *Input) { in.SingleReplicas = tidekeeperv1.SingleReplicasEvict }, how: "evict"},
		{name: "the only replica, not ready", pod: func(p *corev1.Pod) { p.Status.Conditions = nil }, of: deployment(1, 0, sameDeployment), how: "evict"},
		{name: "a budget that never allows it", pod: same, of: deployment(3, 3, sameDeployment), in: withBudget(3, 3), how: "restart"},
		{name: "a budget that allows it", pod: same, of: deployment(3, 3, sameDeployment), in: withBudget(3, 2), how: "evict"},
		{name: "a restart that waits", pod: same, of: deployment(1, 1, sameDeployment), in: func(in *Input) {
			in.Restarts[web] = rescue.Restart{State: rescue.Waiting, Message: "the restart budget is used up"}
		}, how: "stay", reason: restartWaits, message: "the restart budget is used up"},
		{name: "a restart that is done", pod: same, of: deployment(1, 1, sameDeployment), in: func(in *Input) { in.Restarts[web] = rescue.Restart{State: rescue.Succeeded, Tick: now} }, how: "stay", reason: restartWaits, message: "has not deleted it yet"},
		{name: "a restart that failed", pod: same, of: deployment(1, 1, sameDeployment), in: func(in *Input) { in.Restarts[web] = rescue.Restart{State: rescue.Failed, Message: "x"} }, how: "evict", reason: restartFailed, message: "could not be moved by a restart: x"},
		{name: "an eviction that was refused", pod: same, of: deployment(3, 3, sameDeployment), in: func(in *Input) { in.Refused["1"] = Refused{Reason: "by a webhook", Again: now.Add(time.Minute)} }, how: "stay", reason: "Refused", message: "pod shop/web-1 (Deployment/web): by a webhook"},
		{name: "an eviction that is tried again", pod: same, of: deployment(3, 3, sameDeployment), in: func(in *Input) { in.Refused["1"] = Refused{Reason: "by a webhook", Again: now} }, how: "evict", reason: "Refused"},
		{name: "a pod that is being deleted", pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(time.Minute)} }, of: deployment(1, 0, sameDeployment), how: "stay"},
		{name: "a pod that should be gone", pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)} }, how: "stay", reason: "Terminating"},
		{name: "a finalizer", pod: func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now.Add(-time.Minute)}, []string{"example.com/x"}
		}, how: "stay", reason: "Finalizer"},
		{name: "no controller", pod: func(p *corev1.Pod) { p.OwnerReferences = nil }, how: "stay", reason: "NoController", message: "unmanagedPods"},
		{name: "no controller, to be evicted", pod: func(p *corev1.Pod) { p.OwnerReferences = nil }, in: func(in *Input) { in.UnmanagedPods = tidekeeperv1.UnmanagedPodsEvict }, how: "evict"},
		{name: "a DaemonSet", pod: func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }, how: "none"},
		{name: "a static pod", pod: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }, how: "none"},
		{name: "a pod that has ended", pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, how: "none"},
	} {
		in := Input{
			Now: now, Pods: []corev1.Pod{pod(tc.pod)}, Deployments: map[types.NamespacedName]*appsv1.Deployment{}, Restarts: map[types.NamespacedName]rescue.Restart{},
			Refused: map[types.UID]Refused{}, SingleReplicas: tidekeeperv1.SingleReplicasRestart, UnmanagedPods: tidekeeperv1.UnmanagedPodsKeep,
		}
		if tc.of != nil {
			in.Deployments[web] = tc.of
		}
		if tc.in != nil {
			tc.in(&in)
		}
		out := Decide(in)
		how := map[bool]string{true: "stay", false: "none"}[out.Left > 0]
		switch {
		case len(out.Evict) > 0:
			how = "evict"
		case len(out.Restart) > 0:
			how = "restart"
		}
		if how != tc.how || out.Reason != tc.reason || !strings.Contains(out.Message, tc.message) {
			t.Errorf("%s: %s, %s: %s", tc.name, how, out.Reason, out.Message)
		}
	}
}

// TestNamespacesTakeTurns checks that the many pods of a namespace do not come before the first pods of
// other namespaces, because a limited number of requests is sent at a time.
func TestNamespacesTakeTurns(t *testing.T) {
	in := Input{Now: now, SingleReplicas: tidekeeperv1.SingleReplicasRestart, Deployments: map[types.NamespacedName]*appsv1.Deployment{}}
	for namespace, pods := range map[string]int{"crowd": 500, "shop": 2, "web": 1} {
		for i := range pods {
			for kind, of := range map[string]*appsv1.Deployment{"single": deployment(1, 1, func(*appsv1.Deployment) {}), "several": deployment(3, 3, func(*appsv1.Deployment) {})} {
				name := fmt.Sprintf("%s-%03d", kind, i)
				in.Pods = append(in.Pods, pod(func(p *corev1.Pod) {
					p.Namespace, p.Name, p.UID, p.OwnerReferences[0].Name = namespace, name+"-x", types.UID(namespace+name), name+"-7d9f"
				}))
				in.Deployments[types.NamespacedName{Namespace: namespace, Name: name}] = of
			}
		}
	}
	out := Decide(in)
	var evicted, restarted []string
	for i := range 5 {
		evicted, restarted = append(evicted, out.Evict[i].Namespace), append(restarted, out.Restart[i].Namespace)
	}
	if want := []string{"crowd", "shop", "web", "crowd", "shop"}; !slices.Equal(evicted, want) || !slices.Equal(restarted, want) {
		t.Errorf("the namespaces of the first pods are %q for evictions and %q for restarts, want %q", evicted, restarted, want)
	}
	if len(out.Evict) != 503 || len(out.Restart) != 503 {
		t.Errorf("%d evictions and %d restarts, want 503 of each", len(out.Evict), len(out.Restart))
	}
}

// TestRetriesAtThePaceOfTheBudget checks that, of the pods whose evictions were refused, as many are evicted
// before the time of their retries as their PodDisruptionBudget allows by now.
func TestRetriesAtThePaceOfTheBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed int32
		change  func(*Input)
		want    []string
	}{
		"it allows nothing":          {allowed: 0},
		"it allows one eviction":     {allowed: 1, want: []string{"web-1"}},
		"it allows two evictions":    {allowed: 2, want: []string{"web-1", "web-2"}},
		"it allows more than needed": {allowed: 9, want: []string{"web-1", "web-2", "web-3"}},
		"a pod was never refused":    {allowed: 1, change: func(in *Input) { delete(in.Refused, "web-1") }, want: []string{"web-1"}},
		"a retry is due":             {allowed: 0, change: func(in *Input) { in.Refused["web-2"] = Refused{Again: now} }, want: []string{"web-2"}},
		"the refusal is less than half a second old": {allowed: 2, change: func(in *Input) {
			in.Refused["web-1"] = Refused{At: now.Add(-400 * time.Millisecond), Again: now.Add(time.Minute)}
		}, want: []string{"web-2", "web-3"}},
		"it was refused often, two seconds ago": {allowed: 2, change: func(in *Input) {
			in.Refused["web-1"] = Refused{At: now.Add(-2 * time.Second), Again: now.Add(58 * time.Second)}
		}, want: []string{"web-2", "web-3"}},
		"its first refusal is 600 ms old": {allowed: 1, change: func(in *Input) {
			in.Refused["web-1"] = Refused{At: now.Add(-600 * time.Millisecond), Again: now.Add(1400 * time.Millisecond)}
		}, want: []string{"web-1"}},
		"its status is older than its spec": {allowed: 2, change: func(in *Input) { in.Budgets[0].Generation = 2 }},
		"there is another budget": {allowed: 2, change: func(in *Input) {
			other := *in.Budgets[0].DeepCopy()
			in.Budgets = append(in.Budgets, other)
		}},
	} {
		budget := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
		budget.Status.DisruptionsAllowed = tc.allowed
		in := Input{Now: now, Budgets: []policyv1.PodDisruptionBudget{budget}, Refused: map[types.UID]Refused{}}
		for _, name := range []string{"web-1", "web-2", "web-3"} {
			in.Pods = append(in.Pods, pod(func(p *corev1.Pod) { p.Name, p.UID = name, types.UID(name) }))
			in.Refused[types.UID(name)] = Refused{At: now.Add(-time.Minute), Again: now.Add(time.Minute)}
		}
		if tc.change != nil {
			tc.change(&in)
		}
		var got []string
		for _, pod := range Decide(in).Evict {
			got = append(got, pod.Name)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q are evicted, want %q", name, got, tc.want)
		}
	}
}
