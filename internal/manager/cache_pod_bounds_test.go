// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// hugeFields lists each cached pod field whose size is not limited, with a function that fills the
// field with n elements or 10*n bytes.
var hugeFields = []struct {
	name string
	fill func(*corev1.Pod, int)
}{
	{"tolerations", func(p *corev1.Pod, n int) {
		for range n {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}
	}},
	{"one toleration", func(p *corev1.Pod, n int) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: long(n), Operator: corev1.TolerationOpExists}}
	}},
	{"containers", func(p *corev1.Pod, n int) { p.Spec.Containers = append(p.Spec.Containers, hugeContainers(n, 1)...) }},
	{"init containers", func(p *corev1.Pod, n int) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, hugeContainers(n, 1)...)
	}},
	{"requests of a container", func(p *corev1.Pod, n int) { p.Spec.Containers = append(p.Spec.Containers, hugeContainers(1, n)...) }},
	{"requests of an init container", func(p *corev1.Pod, n int) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, hugeContainers(1, n)...)
	}},
	{"requests of the pod", func(p *corev1.Pod, n int) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: hugeRequests(n)}
	}},
	{"overhead", func(p *corev1.Pod, n int) { p.Spec.Overhead = hugeRequests(n) }},
	{"allocated", func(p *corev1.Pod, n int) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "huge", AllocatedResources: hugeRequests(n)})
	}},
	{"node selector", func(p *corev1.Pod, n int) {
		p.Spec.NodeSelector = map[string]string{}
		for i := range n {
			p.Spec.NodeSelector[fmt.Sprint("k", i)] = ""
		}
	}},
	{"terms of the affinity", func(p *corev1.Pod, n int) {
		p.Spec.Affinity = nowhere()
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = make([]corev1.NodeSelectorTerm, n)
	}},
	{"values of the affinity", func(p *corev1.Pod, n int) {
		p.Spec.Affinity = nowhere()
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: corev1.NodeSelectorOpIn, Values: make([]string, n)}},
		}}
	}},
	{"owner", func(p *corev1.Pod, n int) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: long(n), Kind: long(n), Name: long(n), UID: types.UID(long(n)), Controller: new(true)}}
	}},
	{"restart", func(p *corev1.Pod, n int) {
		p.Annotations = map[string]string{tidekeeperv1.RestartedAtAnnotation: long(n)}
	}},
	{"reason", func(p *corev1.Pod, n int) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Reason: long(n)})
	}},
}

func long(n int) string { return strings.Repeat("0123456789", n) }

func hugeRequests(n int) corev1.ResourceList {
	requests := corev1.ResourceList{}
	for i := range n {
		requests[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1")
	}
	return requests
}

func hugeContainers(containers, requests int) []corev1.Container {
	all := make([]corev1.Container, containers)
	for i := range all {
		all[i] = corev1.Container{Name: fmt.Sprint("h", i), Resources: corev1.ResourceRequirements{Requests: hugeRequests(requests)}}
	}
	return all
}

// readyPod returns a small Ready pod to which tests add a huge field.
func readyPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}}}}
	return pod
}

// memoryOf returns a pod's approximate memory in bytes.
func memoryOf(pod *corev1.Pod) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pod.DeepCopy()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) + pod.Size()
}

// TestTransformPodIsBounded checks that the cached part of a pod is bounded, regardless of the
// field that a user fills up to the maximum size of an object.
func TestTransformPodIsBounded(t *testing.T) {
	all := readyPod()
	for _, huge := range hugeFields {
		pod := readyPod()
		huge.fill(pod, 20_000)
		huge.fill(all, 2_000)
		if size := memoryOf(transformed(t, pod)); size > 64<<10 {
			t.Errorf("%s: the cache keeps %d bytes of a pod", huge.name, size)
		}
		// 30 elements are below all bounds on the number of elements, and below most bounds on the
		// number of bytes.
		pod = readyPod()
		huge.fill(pod, 30)
		if size := memoryOf(transformed(t, pod)); size > 128<<10 {
			t.Errorf("%s, few: the cache keeps %d bytes of a pod", huge.name, size)
		}
	}
	if size := memoryOf(transformed(t, all)); size > 64<<10 {
		t.Errorf("the cache keeps %d bytes of a pod with all of them", size)
	}
}

// TestTransformPodBoundsToTheSafeSide checks that a field above its bound never makes a pod look
// more favorable: the pod tolerates no taints, its CPU and memory requests are counted completely,
// and it seems to fit on no other node if its resources or placement constraints are incomplete.
func TestTransformPodBoundsToTheSafeSide(t *testing.T) {
	for _, huge := range hugeFields {
		pod := readyPod()
		huge.fill(pod, 2_000)
		slim := transformed(t, pod)
		if len(slim.Spec.Tolerations) > 0 {
			t.Errorf("%s: it tolerates %d taints", huge.name, len(slim.Spec.Tolerations))
		}
		whole, kept := resources.RequestList(pod), resources.RequestList(slim)
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if want, got := whole[name], kept[name]; want.Cmp(got) != 0 {
				t.Errorf("%s: it requests %s of %s, want %s", huge.name, &got, name, &want)
			}
		}
		if len(kept) < len(whole) || strings.Contains(huge.name, "affinity") || huge.name == "node selector" {
			if fits, err := nodeaffinity.GetRequiredNodeAffinity(slim).Match(&corev1.Node{}); fits || err != nil {
				t.Errorf("%s: it fits on a node, %v", huge.name, err)
			}
		}
		if diff := cmp.Diff(slim, transformed(t, slim.DeepCopy())); diff != "" {
			t.Errorf("%s: a second pass changes the object (-first +second):\n%s", huge.name, diff)
		}
	}
	many := readyPod()
	many.Spec.Containers = append(many.Spec.Containers, hugeContainers(100, 1)...)
	if diff := cmp.Diff(resources.Requests(many), resources.Requests(transformed(t, many))); diff != "" {
		t.Errorf("many containers that request one resource (-want +got):\n%s", diff)
	}
}
