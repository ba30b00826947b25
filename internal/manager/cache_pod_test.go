// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// TestTransformPodKeepsRequests checks that the transform does not change any pod's requests, with
// any options of component-helpers, because the utilization of node pools is computed from cached
// pods.
func TestTransformPodKeepsRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		opts := resourcehelper.PodResourcesOptions{
			UseStatusResources: rapid.Bool().Draw(t, "UseStatusResources"),
			InPlacePodLevelResourcesVerticalScalingEnabled: rapid.Bool().Draw(t, "InPlacePodLevelResourcesVerticalScalingEnabled"),
			ExcludeOverhead:                          rapid.Bool().Draw(t, "ExcludeOverhead"),
			SkipPodLevelResources:                    rapid.Bool().Draw(t, "SkipPodLevelResources"),
			SkipContainerLevelResources:              rapid.Bool().Draw(t, "SkipContainerLevelResources"),
			UseDRANodeAllocatableResourceClaimStatus: rapid.Bool().Draw(t, "UseDRANodeAllocatableResourceClaimStatus"),
			NonMissingContainerRequests:              drawResources(t, "NonMissingContainerRequests"),
		}
		want := resourcehelper.PodRequests(pod.DeepCopy(), opts)

		slim := transformed(t, pod)
		if diff := cmp.Diff(want, resourcehelper.PodRequests(slim, opts)); diff != "" {
			t.Fatalf("requests of the pod and of what the cache keeps of it differ (-pod +cache):\n%s", diff)
		}

		// An object from the cache may pass through the transform again.
		if diff := cmp.Diff(slim, transformed(t, slim.DeepCopy())); diff != "" {
			t.Fatalf("a second pass changes the object (-first +second):\n%s", diff)
		}
	})
}

func TestTransformPod(t *testing.T) {
	deleted := metav1.Now()
	created := metav1.NewTime(deleted.Add(-time.Hour))
	always := corev1.ContainerRestartPolicyAlways
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	more := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	both := func(r corev1.ResourceList) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: r, Limits: r}
	}
	inZone := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
	}}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "1", ResourceVersion: "2", CreationTimestamp: created, DeletionTimestamp: &deleted,
			Labels: map[string]string{"a": "b", "pod-template-hash": "7d4b9"}, Annotations: map[string]string{"c": "d", tidekeeperv1.RestartedAtAnnotation: "03:00"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "8", Controller: new(false)},
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "9", Controller: new(true), BlockOwnerDeletion: new(true)},
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.PodSpec{
			NodeName:     "n1",
			NodeSelector: map[string]string{"disk": "fast"},
			Affinity: &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  inZone,
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}},
				},
				PodAffinity: &corev1.PodAffinity{},
			},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{
				{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A"}}, Resources: *both(requests)},
				{Name: "resized", Resources: *both(requests)},
			},
			InitContainers: []corev1.Container{{Name: "sidecar", RestartPolicy: &always}},
			Volumes:        []corev1.Volume{{Name: "v"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: deleted, Reason: "r", Message: "m"},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "c", Image: "i", AllocatedResources: requests, Resources: both(requests)},
				{Name: "resized", Image: "i", AllocatedResources: more, Resources: both(requests)},
			},
		},
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "1", ResourceVersion: "2", CreationTimestamp: created, DeletionTimestamp: &deleted,
			Labels: map[string]string{"pod-template-hash": "7d4b9"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "9", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{
			NodeName:     "n1",
			NodeSelector: map[string]string{"disk": "fast"},
			Affinity:     &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: inZone}},
			Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{
				{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}},
				{Name: "resized", Resources: corev1.ResourceRequirements{Requests: requests}},
			},
			InitContainers: []corev1.Container{{Name: "sidecar", RestartPolicy: &always}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: podtimeline.SummaryCondition, Status: corev1.ConditionTrue, LastTransitionTime: deleted, Reason: "03:00", Message: "-,-,-,-,-"},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "resized", AllocatedResources: more, Resources: &corev1.ResourceRequirements{Requests: requests},
			}},
		},
	}
	if diff := cmp.Diff(want, transformed(t, pod)); diff != "" {
		t.Errorf("what the cache keeps of a pod (-want +got):\n%s", diff)
	}
}

// TestTransformPodBoundsItsPlacement checks that the cache drops the placement constraints of a
// DaemonSet's pods, and that an affinity above its bound does not make a pod fit on every node.
func TestTransformPodBoundsItsPlacement(t *testing.T) {
	selector := map[string]string{"disk": "fast"}
	daemon := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: selector}}
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
	if got := transformed(t, daemon).Spec; got.NodeSelector != nil || got.Affinity != nil {
		t.Errorf("a DaemonSet's pod keeps %v, %v", got.NodeSelector, got.Affinity)
	}
	long := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: slices.Repeat([]string{"fast"}, 1000)}},
		}}},
	}}}}
	got := transformed(t, long)
	if size := got.Size(); size > 1000 {
		t.Errorf("a pod with a long affinity keeps %d bytes", size)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: selector}}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(got).Match(node); fits || err != nil {
		t.Errorf("it matches a node: %v, %v", fits, err)
	}
}
