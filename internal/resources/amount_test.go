// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestRequests compares the requests of pods with manually calculated values.
func TestRequests(t *testing.T) {
	for _, tc := range []struct {
		name string
		pod  *objects.PodBuilder
		edit func(*corev1.Pod)
		want map[corev1.ResourceName]int64
	}{
		{
			name: "a pod that requests nothing is still a pod",
			pod:  objects.Pod("p"),
			want: map[corev1.ResourceName]int64{"pods": 1},
		},
		{
			name: "containers add up",
			pod:  objects.Pod("p").Requests("100m", "1Ki").Container("1", "1Ki").Container("", "1"),
			want: map[corev1.ResourceName]int64{"cpu": 1100, "memory": 2049, "pods": 1},
		},
		{
			name: "a request of 0 is a request",
			pod:  objects.Pod("p").Requests("0", ""),
			want: map[corev1.ResourceName]int64{"cpu": 0, "pods": 1},
		},
		{
			name: "a fraction is rounded up",
			pod:  objects.Pod("p").Requests("100u", "500m"),
			want: map[corev1.ResourceName]int64{"cpu": 1, "memory": 1, "pods": 1},
		},
		{
			name: "an init container counts if it requests more than everything that runs after it",
			pod:  objects.Pod("p").Requests("100m", "10").Container("100m", "10").Init("300m", "15"),
			want: map[corev1.ResourceName]int64{"cpu": 300, "memory": 20, "pods": 1},
		},
		{
			name: "init containers do not add up",
			pod:  objects.Pod("p").Requests("100m", "10").Init("300m", "30").Init("200m", "40"),
			want: map[corev1.ResourceName]int64{"cpu": 300, "memory": 40, "pods": 1},
		},
		{
			name: "a sidecar runs beside the containers",
			pod:  objects.Pod("p").Requests("100m", "10").Sidecar("50m", "5"),
			want: map[corev1.ResourceName]int64{"cpu": 150, "memory": 15, "pods": 1},
		},
		{
			name: "and beside the init containers that come after it, not before",
			pod:  objects.Pod("p").Requests("10m", "1").Init("300m", "9").Sidecar("50m", "5").Init("280m", "9"),
			want: map[corev1.ResourceName]int64{"cpu": 330, "memory": 14, "pods": 1},
		},
		{
			name: "overhead is added",
			pod:  objects.Pod("p").Requests("100m", "10").Init("300m", "5").Overhead("20m", "7"),
			want: map[corev1.ResourceName]int64{"cpu": 320, "memory": 17, "pods": 1},
		},
		{
			name: "what the pod requests as a whole counts instead of its containers' sum",
			pod:  objects.Pod("p").Requests("100m", "10").Container("100m", "10").PodLevel("500m", ""),
			want: map[corev1.ResourceName]int64{"cpu": 500, "memory": 20, "pods": 1},
		},
		{
			name: "overhead is added to that, too",
			pod:  objects.Pod("p").Requests("100m", "10").PodLevel("500m", "50").Overhead("1m", "1"),
			want: map[corev1.ResourceName]int64{"cpu": 501, "memory": 51, "pods": 1},
		},
		{
			name: "any resource counts, in units",
			pod:  objects.Pod("p").Requests("1", "1"),
			edit: func(pod *corev1.Pod) {
				requests := pod.Spec.Containers[0].Resources.Requests
				requests["nvidia.com/gpu"] = resource.MustParse("2")
				requests["hugepages-2Mi"] = resource.MustParse("4Mi")
				requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1k")
			},
			want: map[corev1.ResourceName]int64{"cpu": 1000, "memory": 1, "pods": 1, "nvidia.com/gpu": 2, "hugepages-2Mi": 4 << 20, "ephemeral-storage": 1000},
		},
		{
			name: "limits are not requests",
			pod:  objects.Pod("p").Requests("100m", ""),
			edit: func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Limits = objects.CPUAndMemory("1", "1Gi") },
			want: map[corev1.ResourceName]int64{"cpu": 100, "pods": 1},
		},
		{
			name: "a container that is resized in place counts with the larger of its current and its desired requests",
			pod:  objects.Pod("p").Requests("100m", "20"),
			edit: func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: "c0", AllocatedResources: objects.CPUAndMemory("400m", "10"),
					Resources: &corev1.ResourceRequirements{Requests: objects.CPUAndMemory("400m", "10")},
				}}
			},
			want: map[corev1.ResourceName]int64{"cpu": 400, "memory": 20, "pods": 1},
		},
		{
			name: "and so does a pod that is resized as a whole",
			pod:  objects.Pod("p").Requests("100m", "10").PodLevel("200m", "20"),
			edit: func(pod *corev1.Pod) {
				pod.Status.AllocatedResources = objects.CPUAndMemory("700m", "10")
				pod.Status.Resources = &corev1.ResourceRequirements{Requests: objects.CPUAndMemory("600m", "10")}
			},
			want: map[corev1.ResourceName]int64{"cpu": 700, "memory": 20, "pods": 1},
		},
		{
			name: "a pod that requests pods counts as one pod",
			pod:  objects.Pod("p"),
			edit: func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("50")}
			},
			want: map[corev1.ResourceName]int64{"pods": 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := tc.pod.Obj()
			if tc.edit != nil {
				tc.edit(pod)
			}
			before := pod.DeepCopy()
			if diff := cmp.Diff(tc.want, byName(Requests(pod))); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Errorf("Requests changed the pod (-before +after):\n%s", diff)
			}
		})
	}
}

func byName(amounts []Amount) map[corev1.ResourceName]int64 {
	named := map[corev1.ResourceName]int64{}
	for _, a := range amounts {
		named[a.Resource] = a.Value
	}
	return named
}

// TestRequestsAreTheSchedulers checks that the requests of random pods equal the results of the
// scheduler's own helper function.
func TestRequestsAreTheSchedulers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := podGenerator().Draw(t, "pod")
		want := map[corev1.ResourceName]int64{corev1.ResourcePods: 1}
		for name, q := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
			UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
		}) {
			if name == corev1.ResourceCPU {
				want[name] = q.MilliValue()
			} else {
				want[name] = q.Value()
			}
		}
		if diff := cmp.Diff(want, byName(Requests(pod))); diff != "" {
			t.Fatalf("requests (-want +got):\n%s", diff)
		}
	})
}

// podGenerator generates pods with init containers, sidecars, overhead, pod-level resources and
// resizes.
func podGenerator() *rapid.Generator[*corev1.Pod] {
	cpu := rapid.SampledFrom([]string{"", "0", "1", "100m", "1500m", "1n"})
	memory := rapid.SampledFrom([]string{"", "0", "1", "64Mi", "1G", "1500m"})
	list := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		list := objects.CPUAndMemory(cpu.Draw(t, "cpu"), memory.Draw(t, "memory"))
		if rapid.Bool().Draw(t, "gpu") {
			list["nvidia.com/gpu"] = resource.MustParse("1")
		}
		return list
	})
	return rapid.Custom(func(t *rapid.T) *corev1.Pod {
		m := objects.Pod("p").Requests(cpu.Draw(t, "cpu"), memory.Draw(t, "memory"))
		for range rapid.IntRange(0, 2).Draw(t, "containers") {
			m.Container(cpu.Draw(t, "cpu"), memory.Draw(t, "memory"))
		}
		for range rapid.IntRange(0, 4).Draw(t, "init containers") {
			if rapid.Bool().Draw(t, "sidecar") {
				m.Sidecar(cpu.Draw(t, "cpu"), memory.Draw(t, "memory"))
			} else {
				m.Init(cpu.Draw(t, "cpu"), memory.Draw(t, "memory"))
			}
		}
		pod := m.Obj()
		if rapid.Bool().Draw(t, "has overhead") {
			pod.Spec.Overhead = list.Draw(t, "overhead")
		}
		if rapid.Bool().Draw(t, "has pod-level resources") {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: list.Draw(t, "pod-level")}
		}
		if rapid.Bool().Draw(t, "is resized") {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c0", AllocatedResources: list.Draw(t, "allocated")}}
			pod.Status.AllocatedResources = list.Draw(t, "allocated to the pod")
			pod.Status.Resources = &corev1.ResourceRequirements{Requests: list.Draw(t, "actuated")}
		}
		return pod
	})
}

// TestAmountsAreBounded checks that every quantity is counted as at least 0 and at most
// amountLimit, so that a pod's requests cannot make a pool's sums overflow or become negative.
func TestAmountsAreBounded(t *testing.T) {
	for _, text := range []string{"2Pi", "9223372036854776", "9223372036854775807", "100E", "1e30", "1000000000000E"} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "example.com/x"} {
			got := AmountsOf(corev1.ResourceList{name: resource.MustParse(text)})
			if want := []Amount{{name, amountLimit}}; !cmp.Equal(want, got, cmp.AllowUnexported(Amount{})) {
				t.Errorf("%s of %s counts for %v; want %v", text, name, got, want)
			}
			got = AmountsOf(corev1.ResourceList{name: resource.MustParse("-" + text)})
			if want := []Amount{{name, 0}}; !cmp.Equal(want, got, cmp.AllowUnexported(Amount{})) {
				t.Errorf("-%s of %s counts for %v; want %v", text, name, got, want)
			}
		}
	}
}

// TestAmountsOfCPUAreBoundedInThousandths checks that the limit for cpu applies to the amount in
// millicores.
func TestAmountsOfCPUAreBoundedInThousandths(t *testing.T) {
	for text, want := range map[string]int64{"1T": 1e15, "2T": amountLimit} {
		if got := AmountsOf(objects.CPUAndMemory(text, "")); got[0].Value != want {
			t.Errorf("%s of cpu counts for %d; want %d", text, got[0].Value, want)
		}
	}
}

func TestAmountsAreInTheOrderOfTheirNames(t *testing.T) {
	list := corev1.ResourceList{"a": resource.MustParse("1"), "m": resource.MustParse("2"), "z": resource.MustParse("3")}
	want := []Amount{{"a", 1}, {"m", 2}, {"z", 3}}
	for range 20 {
		if diff := cmp.Diff(want, AmountsOf(list), cmp.AllowUnexported(Amount{})); diff != "" {
			t.Fatalf("amounts (-want +got):\n%s", diff)
		}
	}
}
