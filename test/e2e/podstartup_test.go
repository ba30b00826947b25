// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// isReady reports whether a pod is ready.
func isReady(pod *corev1.Pod) bool {
	c := pods.Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// slowly returns a Deployment for a pool's nodes. Its pods take some seconds for two of their
// start-up stages. They have no init containers, so they are initialized as soon as their node has
// seen them.
func slowly(pool string, replicas int32) *appsv1.Deployment {
	d := deployment(pool, replicas, corev1.PodSpec{
		NodeSelector: map[string]string{role(pool): ""},
		Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:   app.Containers,
	})
	d.Spec.Template.Annotations = map[string]string{
		"sandbox.tidekeeper.dev/started-after":          "2s",
		"sandbox.tidekeeper.dev/containers-ready-after": "4s",
	}
	return d
}

// startups returns the number of pod start-ups in a pool that the manager has counted for the given
// stage, and the total seconds that they spent in this stage.
func startups(t *testing.T, manager *framework.Manager, pool string, stage podtimeline.StageName) (count int, sum float64) {
	t.Helper()
	_, body, err := get(t, manager.Metrics+"/metrics", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	read := func(what string) float64 {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^tidekeeper_pod_startup_stage_seconds_%s\{pool="%s",stage="%s"\} (\S+)$`, what, pool, stage))
		found := line.FindStringSubmatch(body)
		if found == nil {
			return 0
		}
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	return int(read("count")), read("sum")
}

func eventuallyCountedStartups(t *testing.T, manager *framework.Manager, pool string, want int) {
	t.Helper()
	framework.Eventually(t, "start-ups are counted", func() error {
		got, _ := startups(t, manager, pool, podtimeline.Ready)
		return diff(want, got)
	})
}

// awaitCounting waits until the manager has counted a newly created pod, in a separate pool. By
// then the manager has become the leader in an earlier second than any later pod's start-up, and
// has seen all earlier pod events.
func awaitCounting(t *testing.T, manager *framework.Manager) {
	t.Helper()
	name := fmt.Sprintf("startup-marker-%d", time.Now().UnixNano())
	nodes := addMembers(t, name, 1)
	cluster.Apply(t, pool(name))
	healthyWith(t, name, 1) // The manager knows the pool: otherwise its first pod would count for no pool.
	var marker *corev1.Pod
	framework.Eventually(t, "a pod of "+name+" is counted", func() error {
		if marker != nil {
			cluster.Refresh(t, marker)
		}
		// A pod is not counted if it becomes ready before or in the second in which the manager
		// becomes the leader. In that case another pod is created.
		if marker == nil || isReady(marker) {
			marker = podOn(nodes[0], fmt.Sprintf("startup-marker-%d", time.Now().UnixNano()), nil)
			cluster.Apply(t, marker)
		}
		if got, _ := startups(t, manager, name, podtimeline.Ready); got == 0 {
			return errors.New("none was")
		}
		return nil
	})
}

// mustHaveCounted waits until the manager has seen all earlier events, and fails the test unless it
// has counted exactly `want` start-ups in the pool.
func mustHaveCounted(t *testing.T, manager *framework.Manager, pool string, want int) {
	t.Helper()
	awaitCounting(t, manager)
	got, _ := startups(t, manager, pool, podtimeline.Ready)
	if err := diff(want, got); err != nil {
		t.Errorf("start-ups in %s: %v", pool, err)
	}
}

// TestPodStartupIsCountedOnce checks that start-ups are counted by stage and pool, once per pod. A
// restarted manager must not count them again, but must count each pod that was starting at the
// time.
func TestPodStartupIsCountedOnce(t *testing.T) {
	manager := cluster.StartManager(t)
	addMembers(t, "startup", 1)
	cluster.Apply(t, pool("startup"))
	healthyWith(t, "startup", 1)
	awaitCounting(t, manager)
	d := slowly("startup", 3)
	cluster.Apply(t, d)
	eventuallyCountedStartups(t, manager, "startup", 3)

	// The durations match the pods' timestamps and are at least the simulated delays, which a busy
	// machine cannot shorten. Timestamps are in whole seconds, so a duration may be off by one.
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	for stage, least := range map[podtimeline.StageName]float64{
		podtimeline.Scheduled: 0, podtimeline.Initialized: 0, podtimeline.ContainersStarted: 2, podtimeline.ContainersReady: 4, podtimeline.Ready: 0,
	} {
		took := 0.0
		for i := range list.Items {
			took += podtimeline.StageDurations(podtimeline.Summarize(&list.Items[i]))[stage].Seconds()
		}
		count, sum := startups(t, manager, "startup", stage)
		if err := errors.Join(diff(3, count), diff(took, sum)); err != nil {
			t.Errorf("pods in %s %v", stage, err)
		}
		if mean := sum / 3; mean < least-1 {
			t.Errorf("%s took %f s on average, want %f", stage, mean, least)
		}
	}

	// A pod that becomes ready again is not counted again.
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		pod := &list.Items[0]
		cluster.Refresh(t, pod)
		before := pod.DeepCopy()
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
				c.Status, c.LastTransitionTime = status, metav1.Now()
			}
		}
		if err := cluster.Status().Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	eventuallyReady(t, d)
	mustHaveCounted(t, manager, "startup", 3)

	// Two more pods start while the manager is stopped, and become ready when another manager
	// leads.
	more := slowly("startup", 2)
	more.Name, more.Spec.Selector.MatchLabels, more.Spec.Template.Labels = "startup-more", map[string]string{"app": "startup-more"}, map[string]string{"app": "startup-more"}
	more.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: framework.Gate}}
	cluster.Apply(t, more)
	framework.Eventually(t, "two more pods start", func() error {
		cluster.Refresh(t, more)
		return diff(int32(2), more.Status.Replicas)
	})
	manager.Kill(t)
	manager = cluster.StartManager(t)
	awaitCounting(t, manager)
	framework.Eventually(t, "two more pods are ready", func() error {
		cluster.OpenGate(t, more.Namespace, more.Name)
		cluster.Refresh(t, more)
		return diff(int32(2), more.Status.ReadyReplicas)
	})
	eventuallyCountedStartups(t, manager, "startup", 2)
	mustHaveCounted(t, manager, "startup", 2)

	// A manager that starts when all pods are ready counts none of them.
	manager.Kill(t)
	manager = cluster.StartManager(t)
	mustHaveCounted(t, manager, "startup", 0)
}

// TestPodStartupByPool checks that pods on nodes without a pool are counted too, and that a deleted
// pool's series are dropped.
func TestPodStartupByPool(t *testing.T) {
	manager := cluster.StartManager(t)
	addMembers(t, "startup-gone", 1)
	p := pool("startup-gone")
	cluster.Apply(t, p)
	healthyWith(t, "startup-gone", 1)
	cluster.AddNodes(t, "startup-none", 1)
	awaitCounting(t, manager)
	in := deployment("startup-in", 1, app)
	in.Spec.Template.Spec.NodeName = "startup-gone-1"
	out := deployment("startup-out", 1, app)
	out.Spec.Template.Spec.NodeName = "startup-none-1"
	cluster.Apply(t, in)
	cluster.Apply(t, out)
	eventuallyCountedStartups(t, manager, "startup-gone", 1)
	eventuallyCountedStartups(t, manager, "", 1)
	cluster.Delete(t, p)
	eventuallyGone(t, p)
	eventuallyCountedStartups(t, manager, "startup-gone", 0)
}

// TestPodStartupIsTheLeaders checks that only the leader counts start-ups, and that a new leader
// does not count those that its predecessor has counted.
func TestPodStartupIsTheLeaders(t *testing.T) {
	elect := cluster.ElectUntilReleased(t)
	leader := cluster.StartManager(t, elect...)
	addMembers(t, "startup-lead", 1)
	cluster.Apply(t, pool("startup-lead"))
	healthyWith(t, "startup-lead", 1)
	standby := cluster.StartManager(t, elect...)
	awaitCounting(t, leader)
	d := slowly("startup-lead", 2)
	cluster.Apply(t, d)
	eventuallyCountedStartups(t, leader, "startup-lead", 2)
	leader.Stop(t)
	awaitCounting(t, standby)
	cluster.Change(t, d, func() { d.Spec.Replicas = new(int32(3)) })
	eventuallyReady(t, d)
	eventuallyCountedStartups(t, standby, "startup-lead", 1)
	mustHaveCounted(t, standby, "startup-lead", 1)
}
