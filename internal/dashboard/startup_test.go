// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// startedPod returns a pod that was created the given number of minutes before noon. containers and
// ready are the delays after which its containers and the pod itself became ready. If ready is 0,
// the pod is not ready.
func startedPod(name string, minutes int, containers, ready time.Duration) corev1.Pod {
	created := noon.Add(-time.Duration(minutes) * time.Minute)
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(created)}}
	p.Spec.Containers = []corev1.Container{{Name: "app"}}
	isTrue := func(kind corev1.PodConditionType, after time.Duration) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created.Add(after))})
	}
	isTrue(corev1.PodScheduled, 0)
	isTrue(corev1.PodInitialized, 0)
	if ready == 0 {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "ImagePullBackOff", Message: fmt.Sprintf("back-off of %s, %d times", name, minutes),
		}}}}
		return p
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(created)}}}}
	isTrue(corev1.ContainersReady, containers)
	isTrue(corev1.PodReady, ready)
	return p
}

// ofReplicaSet sets the pod's owner to a ReplicaSet of the given Deployment.
func ofReplicaSet(p corev1.Pod, deployment string) corev1.Pod {
	yes := true
	p.Labels = map[string]string{"pod-template-hash": "5d8f"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-5d8f", Controller: &yes}}
	return p
}

// TestStartUpPage checks that pods that are not ready are shown in one row per workload and reason,
// and do not affect the scale of the other bars. If a pod became ready again, its start-up ends
// when its containers are ready.
func TestStartUpPage(t *testing.T) {
	pods := []corev1.Pod{startedPod("again", 50, time.Second, 40*time.Minute), startedPod("slow", 40, 16*time.Second, 16*time.Second)}
	for i := range 3 {
		pods = append(pods, ofReplicaSet(startedPod(fmt.Sprintf("huge-5d8f-%d", i), 30+i, 0, 0), "huge"))
	}
	shown := html(t, siteWith(t, map[string]runtime.Object{kindPods: &corev1.PodList{Items: pods}}), "/pods")
	waiting, ready, found := strings.Cut(shown, "Slowest that became ready")
	if !found || strings.Count(waiting, `<tr id="waiting-`) != 1 {
		t.Fatalf("three pods that wait for the same are not one line:\n%s", waiting)
	}
	for _, want := range []string{
		"2 of 5 pods are ready: half within <strong>1s</strong>, the slowest after <strong>16s</strong>", "Not ready yet: 3",
		`<span class="ns">shop/Deployment/</span>huge`, "ImagePullBackOff", ">32m</td>", "kubectl tide pods slow -A --since 1h --ready=false",
	} {
		if !strings.Contains(waiting, want) {
			t.Errorf("above the list there is no %q:\n%s", want, waiting)
		}
	}
	if strings.Contains(ready, `id="pod-shop/huge`) {
		t.Errorf("pods that are not ready are among the slowest that became ready:\n%s", ready)
	}
	if strings.Index(ready, "pod-shop/slow") > strings.Index(ready, "pod-shop/again") || strings.Contains(ready, "40m") {
		t.Errorf("a pod that became ready again is slow:\n%s", ready)
	}
	for _, want := range []string{"ready again <time", "today 11:50", `width="1000"`, "containers ready usually waits for startup and readiness probes", "pods slow -A --since 1h --ready<"} {
		if !strings.Contains(ready, want) {
			t.Errorf("the list lacks %q:\n%s", want, ready)
		}
	}
	overview := html(t, siteWith(t, map[string]runtime.Object{kindPods: &corev1.PodList{Items: pods}}), "/")
	if !strings.Contains(overview, "3 pods</span> of the last hour not ready yet") || strings.Contains(overview, "huge-5d8f") {
		t.Error("the overview does not say how many pods are not ready, or lists them as slow")
	}
}
