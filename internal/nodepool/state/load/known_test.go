// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// TestPodsThatShareTheirContainers checks that pods with shared containers have the same profile,
// unless they differ in another field of the profile.
func TestPodsThatShareTheirContainers(t *testing.T) {
	c := NewNodes()
	first := objects.Pod("first").On("node").Requests("100m", "1Ki").Obj()
	first.UID = "first"
	first.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c0", AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")},
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")}},
	}}
	set := func(name string, change func(*corev1.Pod)) *Profile {
		pod := *first // shares the containers
		pod.Name, pod.UID = name, types.UID(name)
		change(&pod)
		c.SetPod(&pod)
		return c.pods[pod.UID].profile
	}
	same := func(*corev1.Pod) {}
	owned := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}}
	}
	infeasible := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	}
	known := set("first", same)
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		same   bool
	}{"another": {same, true}, "of a ReplicaSet": {owned, false}, "with an infeasible resize": {infeasible, false}} {
		if got := set(name, tt.change); (got == known) != tt.same {
			t.Errorf("the profile of the pod %s is the same: %t, want %t", name, got == known, tt.same)
		}
	}
	if got := resources.ValueOf(known.Requests, corev1.ResourceCPU); got != 400 {
		t.Errorf("the pod requests %dm, want 400m", got)
	}
	for uid := range c.pods {
		c.DeletePod(uid)
	}
	if len(c.profiles) != 0 {
		t.Errorf("%d profiles are left", len(c.profiles))
	}
	if again := set("again", same); again != c.profiles[again.key] || again.users != 1 {
		t.Errorf("a profile that was dropped has %d users, want a new one with 1", again.users)
	}
}

// TestKnownProfilesAreBounded checks that cached profiles of deleted containers are eventually
// dropped.
func TestKnownProfilesAreBounded(t *testing.T) {
	c := NewNodes()
	for i := range 3 * minKnown {
		pod := objects.Pod("p").On("node").Requests("100m", fmt.Sprint(i)).Obj()
		pod.UID = "p"
		c.SetPod(pod)
		if len(c.known) > 2*minKnown {
			t.Fatalf("%d profiles are remembered after %d pods", len(c.known), i)
		}
	}
}
