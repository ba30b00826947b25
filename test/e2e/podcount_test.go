// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/podcount"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// replicaSet returns a ReplicaSet without labels.
func replicaSet(name string, replicas int32) *appsv1.ReplicaSet {
	d := deployment(name, replicas, app)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.Namespace},
		Spec:       appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
}

// eventuallyCounted waits until a ReplicaSet's count label has the value `want`.
func eventuallyCounted(t *testing.T, rs *appsv1.ReplicaSet, want string) {
	t.Helper()
	framework.Eventually(t, "replica set "+rs.Name+" is counted", func() error {
		cluster.Refresh(t, rs)
		return diff(want, rs.Labels[podcount.Label])
	})
}

// podsOf returns a ReplicaSet's non-terminating pods.
func podsOf(t *testing.T, rs *appsv1.ReplicaSet) []*corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.InNamespace(rs.Namespace)); err != nil {
		t.Fatal(err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], rs) && list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods
}

// writes counts the manager's writes to each ReplicaSet with the given name prefix, keyed by name.
func writes(t *testing.T, audit *framework.Audit, prefix string) map[string]int {
	t.Helper()
	written := map[string]int{}
	for _, r := range audit.Requests(t) {
		if r.Writes() && strings.HasPrefix(r.Name, prefix) {
			written[fmt.Sprint(r.Verb, " ", r.Resource, " ", r.Name)]++
		}
	}
	return written
}

// TestPodCount_OffByDefault checks that the manager neither labels nor reads ReplicaSets by
// default.
func TestPodCount_OffByDefault(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	manager := cluster.StartManager(t)
	cluster.AddNodes(t, "s1off", 1)
	rs := replicaSet("s1off", 1)
	cluster.Apply(t, rs)
	framework.Eventually(t, "the replica set is ready", func() error {
		cluster.Refresh(t, rs)
		return diff(int32(1), rs.Status.ReadyReplicas)
	})
	// The manager has handled a later object, and is idle.
	cluster.Apply(t, pool("s1off"))
	eventuallyReason(t, "s1off", "NoNodes")
	manager.AssertIdle(t)
	cluster.Refresh(t, rs)
	if len(rs.Labels) > 0 {
		t.Errorf("it has labels: %v", rs.Labels)
	}
	for _, r := range audit.Requests(t) {
		if r.Resource == "replicasets" {
			t.Errorf("requested: %s", r)
		}
	}
}

// TestPodCount_FollowsThePods checks that a ReplicaSet's label is always the number of its pods.
func TestPodCount_FollowsThePods(t *testing.T) {
	cluster.StartManager(t, "--controllers=pod-count")
	cluster.AddNodes(t, "s1", 1)
	rs := replicaSet("s1", 3)
	cluster.Apply(t, rs)
	eventuallyCounted(t, rs, "3")

	framework.Eventually(t, "kubectl get rs -L pod-count", func() error {
		out, err := cluster.Kubectl("", "get", "rs", "s1", "-L", "pod-count")
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if err := diff([]string{"NAME", "DESIRED", "CURRENT", "READY", "AGE", "POD-COUNT"}, strings.Fields(lines[0])); err != nil {
			t.Fatalf("columns %v", err)
		}
		if !regexp.MustCompile(`^s1 +3 +3 +3 +\S+ +3$`).MatchString(lines[1]) {
			return fmt.Errorf("it prints %q", lines[1])
		}
		return nil
	})

	scale := func(replicas int32) { cluster.Change(t, rs, func() { rs.Spec.Replicas = &replicas }) }
	scale(0)
	eventuallyCounted(t, rs, "0")
	scale(2)
	eventuallyCounted(t, rs, "2")

	// A pod that is released from the ReplicaSet and replaced is not counted twice.
	released := podsOf(t, rs)[0]
	cluster.Change(t, released, func() { released.Labels["app"] = "s1-released" })
	t.Cleanup(func() { cluster.Delete(t, released) })
	framework.Eventually(t, "the released pod is replaced", func() error {
		cluster.Refresh(t, released)
		return errors.Join(diff(0, len(released.OwnerReferences)), diff(2, len(podsOf(t, rs))))
	})
	eventuallyCounted(t, rs, "2")
	if err := diff(map[string]string{podcount.Label: "2"}, rs.Labels); err != nil {
		t.Errorf("labels %v", err)
	}

	// The manager writes nothing but the label's values.
	var written []string
	for _, entry := range rs.ManagedFields {
		if entry.Manager == "tidekeeper" {
			written = append(written, entry.FieldsV1.GetRawString())
		}
	}
	if err := diff([]string{`{"f:metadata":{"f:labels":{".":{},"f:pod-count":{}}}}`}, written); err != nil {
		t.Errorf("fields written %v", err)
	}
}

// TestPodCount_DeploymentRollsOn checks that the pods of a Deployment's ReplicaSet are counted, and
// that the Deployment's rollouts still work.
func TestPodCount_DeploymentRollsOn(t *testing.T) {
	cluster.StartManager(t, "--controllers=pod-count")
	cluster.AddNodes(t, "s1roll", 1)
	d := deployment("s1roll", 2, app)
	cluster.Apply(t, d)
	rolledOut(t, "Deployment", "s1roll")
	if out, err := cluster.Kubectl("", "rollout", "restart", "deployment/s1roll"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rolledOut(t, "Deployment", "s1roll")
	framework.Eventually(t, "old and new are counted", func() error {
		list := &appsv1.ReplicaSetList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(d.Namespace), client.MatchingLabels{"app": "s1roll"}); err != nil {
			return err
		}
		counts := map[string]int{}
		for _, rs := range list.Items {
			counts[rs.Labels[podcount.Label]]++
		}
		return diff(map[string]int{"0": 1, "2": 1}, counts)
	})
}

// TestPodCount_EveryPodCounts runs without the workload controllers. The count must change
// immediately with each pod that is created, terminates or changes its owner, and never because of
// other owners' pods.
func TestPodCount_EveryPodCounts(t *testing.T) {
	cluster.StartManager(t, "--controllers=pod-count")
	cluster.AddNodes(t, "s1each", 1)
	a, b := replicaSet("s1each-a", 2), replicaSet("s1each-b", 1)
	cluster.Apply(t, a)
	cluster.Apply(t, b)
	eventuallyCounted(t, a, "2")
	eventuallyCounted(t, b, "1")

	cluster.Sandbox(t, "component", "pause", "kube-controller-manager")
	resume := func() { cluster.Sandbox(t, "component", "resume", "kube-controller-manager") }
	t.Cleanup(resume)
	owner := func(rs *appsv1.ReplicaSet) []metav1.OwnerReference {
		return []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
	add := func(name string, owners []metav1.OwnerReference) {
		cluster.Apply(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: a.Namespace, Labels: a.Spec.Selector.MatchLabels, OwnerReferences: owners},
			Spec:       app,
		})
	}

	// Add one more pod, and two pods that have the same labels but other owners.
	add("s1each-more", owner(a))
	add("s1each-orphan", nil)
	add("s1each-foreign", owner(b))
	eventuallyCounted(t, a, "3")
	eventuallyCounted(t, b, "2")

	// A pod changes its owner.
	moved := podsOf(t, a)[0]
	cluster.Change(t, moved, func() { moved.OwnerReferences = owner(b) })
	eventuallyCounted(t, a, "2")
	eventuallyCounted(t, b, "3")

	// A terminating pod no longer counts, although it still exists.
	leaving := podsOf(t, b)[0]
	cluster.Change(t, leaving, func() { leaving.Finalizers = []string{"example.com/stay"} })
	t.Cleanup(func() {
		_ = cluster.Patch(context.WithoutCancel(t.Context()), leaving, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	cluster.Delete(t, leaving)
	eventuallyCounted(t, b, "2")
	cluster.Refresh(t, leaving)

	// A failed pod does not count either.
	ended := podsOf(t, a)[0]
	cluster.ChangeStatus(t, ended, func() { ended.Status.Phase = corev1.PodFailed })
	eventuallyCounted(t, a, "1")
}

// TestPodCount_NothingIsWrittenAtRest checks that the manager writes the label only when its value
// is wrong.
func TestPodCount_NothingIsWrittenAtRest(t *testing.T) {
	manager := cluster.StartManager(t, "--controllers=pod-count")
	cluster.AddNodes(t, "s1rest", 1)
	rs := replicaSet("s1rest", 2)
	cluster.Apply(t, rs)
	eventuallyCounted(t, rs, "2")
	framework.Eventually(t, "the replica set is ready", func() error {
		cluster.Refresh(t, rs)
		return diff(int32(2), rs.Status.ReadyReplicas)
	})

	// idle waits until the manager has seen all earlier events and has no work left. The manager
	// has seen them once it reverts a later change of the ReplicaSet `last`.
	last := replicaSet("s1rest-last", 0)
	cluster.Apply(t, last)
	eventuallyCounted(t, last, "0")
	idle := func() {
		t.Helper()
		cluster.Change(t, last, func() { last.Labels[podcount.Label] = "many" })
		eventuallyCounted(t, last, "0")
		manager.AssertIdle(t)
	}

	// A manual change is reverted, with one write per ReplicaSet.
	audit := cluster.Audit(t, "tidekeeper/")
	cluster.Change(t, rs, func() { rs.Labels[podcount.Label] = "many" })
	eventuallyCounted(t, rs, "2")
	cluster.Change(t, rs, func() { delete(rs.Labels, podcount.Label) })
	eventuallyCounted(t, rs, "2")
	idle()
	if err := diff(map[string]int{"patch replicasets s1rest": 2, "patch replicasets s1rest-last": 1}, writes(t, audit, "s1rest")); err != nil {
		t.Errorf("writes %v", err)
	}

	// Changes of other fields cause no writes.
	cluster.Change(t, rs, func() { rs.Annotations = map[string]string{"example.com/note": "x"} })
	pod := podsOf(t, rs)[0]
	cluster.Change(t, pod, func() { pod.Annotations = map[string]string{"example.com/note": "x"} })
	idle()

	// A manager that finds all labels correct writes nothing.
	manager.Stop(t)
	manager = cluster.StartManager(t, "--controllers=pod-count")
	idle()
	asked := map[string]int{}
	for _, r := range audit.Requests(t) {
		// The watch includes the initial list of ReplicaSets, while pods are listed before they are
		// watched.
		if (r.Resource == "replicasets" || r.Resource == "pods") && r.Verb != "watch" && r.Name != last.Name {
			asked[r.Verb+" "+r.Resource]++
		}
	}
	if err := diff(map[string]int{"list pods": 1}, asked); err != nil {
		t.Errorf("at rest: requests %v", err)
	}
}
