// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"
)

// What a pod requests, worked out by hand.
func TestRequests(t *testing.T) {
	for _, tc := range []struct {
		name string
		pod  *PodMaker
		edit func(*corev1.Pod)
		want map[corev1.ResourceName]int64
	}{
		{
			name: "a pod that requests nothing is still a pod",
			pod:  MakePod("p"),
			want: map[corev1.ResourceName]int64{"pods": 1},
		},
		{
			name: "containers add up",
			pod:  MakePod("p").Requests("100m", "1Ki").Container("1", "1Ki").Container("", "1"),
			want: map[corev1.ResourceName]int64{"cpu": 1100, "memory": 2049, "pods": 1},
		},
		{
			name: "a request of nothing is a request",
			pod:  MakePod("p").Requests("0", ""),
			want: map[corev1.ResourceName]int64{"cpu": 0, "pods": 1},
		},
		{
			name: "a fraction is rounded up",
			pod:  MakePod("p").Requests("100u", "500m"),
			want: map[corev1.ResourceName]int64{"cpu": 1, "memory": 1, "pods": 1},
		},
		{
			name: "an init container counts if it needs more than all that runs after it",
			pod:  MakePod("p").Requests("100m", "10").Container("100m", "10").Init("300m", "15"),
			want: map[corev1.ResourceName]int64{"cpu": 300, "memory": 20, "pods": 1},
		},
		{
			name: "init containers do not add up",
			pod:  MakePod("p").Requests("100m", "10").Init("300m", "30").Init("200m", "40"),
			want: map[corev1.ResourceName]int64{"cpu": 300, "memory": 40, "pods": 1},
		},
		{
			name: "a sidecar runs beside the containers",
			pod:  MakePod("p").Requests("100m", "10").Sidecar("50m", "5"),
			want: map[corev1.ResourceName]int64{"cpu": 150, "memory": 15, "pods": 1},
		},
		{
			name: "and beside the init containers that come after it, not before",
			pod:  MakePod("p").Requests("10m", "1").Init("300m", "9").Sidecar("50m", "5").Init("280m", "9"),
			want: map[corev1.ResourceName]int64{"cpu": 330, "memory": 14, "pods": 1},
		},
		{
			name: "overhead comes on top",
			pod:  MakePod("p").Requests("100m", "10").Init("300m", "5").Overhead("20m", "7"),
			want: map[corev1.ResourceName]int64{"cpu": 320, "memory": 17, "pods": 1},
		},
		{
			name: "what the pod requests as a whole counts instead of its containers' sum",
			pod:  MakePod("p").Requests("100m", "10").Container("100m", "10").PodLevel("500m", ""),
			want: map[corev1.ResourceName]int64{"cpu": 500, "memory": 20, "pods": 1},
		},
		{
			name: "overhead comes on top of that too",
			pod:  MakePod("p").Requests("100m", "10").PodLevel("500m", "50").Overhead("1m", "1"),
			want: map[corev1.ResourceName]int64{"cpu": 501, "memory": 51, "pods": 1},
		},
		{
			name: "any resource counts, in units",
			pod:  MakePod("p").Requests("1", "1"),
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
			pod:  MakePod("p").Requests("100m", ""),
			edit: func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Limits = cpuAndMemory("1", "1Gi") },
			want: map[corev1.ResourceName]int64{"cpu": 100, "pods": 1},
		},
		{
			name: "a container that is resized in place holds the larger of what it has and what it is to have",
			pod:  MakePod("p").Requests("100m", "20"),
			edit: func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: "c0", AllocatedResources: cpuAndMemory("400m", "10"),
					Resources: &corev1.ResourceRequirements{Requests: cpuAndMemory("400m", "10")},
				}}
			},
			want: map[corev1.ResourceName]int64{"cpu": 400, "memory": 20, "pods": 1},
		},
		{
			name: "and so does a pod that is resized as a whole",
			pod:  MakePod("p").Requests("100m", "10").PodLevel("200m", "20"),
			edit: func(pod *corev1.Pod) {
				pod.Status.AllocatedResources = cpuAndMemory("700m", "10")
				pod.Status.Resources = &corev1.ResourceRequirements{Requests: cpuAndMemory("600m", "10")}
			},
			want: map[corev1.ResourceName]int64{"cpu": 700, "memory": 20, "pods": 1},
		},
		{
			name: "a pod that pretends to request pods counts for one",
			pod:  MakePod("p"),
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
			r := newRegistry()
			if diff := cmp.Diff(tc.want, byName(r, r.requests(pod))); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Errorf("asking changed the pod (-before +after):\n%s", diff)
			}
		})
	}
}

func byName(r *registry, amounts []amount) map[corev1.ResourceName]int64 {
	named := map[corev1.ResourceName]int64{}
	for _, a := range amounts {
		named[r.names[a.resource]] = a.value
	}
	return named
}

// Whatever the pod, it counts for what the scheduler counts.
func TestRequestsAreTheSchedulers(t *testing.T) {
	r := newRegistry()
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
		if diff := cmp.Diff(want, byName(r, r.requests(pod))); diff != "" {
			t.Fatalf("requests (-want +got):\n%s", diff)
		}
	})
}

// podGenerator makes pods with init containers, sidecars, overhead, pod-level
// resources and resizes.
func podGenerator() *rapid.Generator[*corev1.Pod] {
	cpu := rapid.SampledFrom([]string{"", "0", "1", "100m", "1500m", "1n"})
	memory := rapid.SampledFrom([]string{"", "0", "1", "64Mi", "1G", "1500m"})
	list := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		list := cpuAndMemory(cpu.Draw(t, "cpu"), memory.Draw(t, "memory"))
		if rapid.Bool().Draw(t, "gpu") {
			list["nvidia.com/gpu"] = resource.MustParse("1")
		}
		return list
	})
	return rapid.Custom(func(t *rapid.T) *corev1.Pod {
		m := MakePod("p").Requests(cpu.Draw(t, "cpu"), memory.Draw(t, "memory"))
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

// Nobody can make a pool's level jump, or go below nothing, by what they write
// into a pod: the most that anything counts for is amountLimit.
func TestAmountsAreBounded(t *testing.T) {
	for _, text := range []string{"2Pi", "9223372036854776", "9223372036854775807", "100E", "1e30", "1000000000000E"} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "example.com/x"} {
			r := newRegistry()
			got := r.amounts(corev1.ResourceList{name: resource.MustParse(text)})
			if want := []amount{{0, amountLimit}}; !cmp.Equal(want, got, cmp.AllowUnexported(amount{})) {
				t.Errorf("%s of %s counts for %v; want %v", text, name, got, want)
			}
			got = r.amounts(corev1.ResourceList{name: resource.MustParse("-" + text)})
			if want := []amount{{0, 0}}; !cmp.Equal(want, got, cmp.AllowUnexported(amount{})) {
				t.Errorf("-%s of %s counts for %v; want %v", text, name, got, want)
			}
		}
	}
}

// The limit is one of what is counted: thousandths, for cpu.
func TestAmountsOfCPUAreBoundedInThousandths(t *testing.T) {
	r := newRegistry()
	for text, want := range map[string]int64{"1T": 1e15, "2T": amountLimit} {
		if got := r.amounts(cpuAndMemory(text, "")); got[0].value != want {
			t.Errorf("%s of cpu counts for %d; want %d", text, got[0].value, want)
		}
	}
}

func TestAmountsAreInTheOrderOfTheirNumbers(t *testing.T) {
	r := newRegistry()
	r.number("z")
	r.number("a")
	list := corev1.ResourceList{"a": resource.MustParse("1"), "m": resource.MustParse("2"), "z": resource.MustParse("3")}
	want := []amount{{0, 3}, {1, 1}, {2, 2}}
	for range 20 {
		if diff := cmp.Diff(want, r.amounts(list), cmp.AllowUnexported(amount{})); diff != "" {
			t.Fatalf("amounts (-want +got):\n%s", diff)
		}
	}
}

func TestTerminal(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]bool{
		"": false, corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false, corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		if got := terminal(MakePod("p").Phase(phase).Obj()); got != want {
			t.Errorf("a pod in phase %q is terminal: %v; want %v", phase, got, want)
		}
	}
}

// listGenerator makes resource lists, with zeros among them.
func listGenerator() *rapid.Generator[corev1.ResourceList] {
	return rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		list := corev1.ResourceList{}
		for name, n := range rapid.MapOf(
			rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "pods", "ephemeral-storage", "hugepages-1Gi", "example.com/x"}),
			rapid.Int64Range(0, 1<<40)).Draw(t, "list") {
			list[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
		return list
	})
}

// Sums that were added to and taken from in any order are what a recount of
// what is left gives, and when nothing is left nothing is in them.
func TestSumsEqualARecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRegistry()
		var running sums
		var in [][]amount
		recount := func() sums {
			var s sums
			for _, amounts := range in {
				s.add(amounts)
			}
			return s
		}
		equal := func(what string, want, got sums) {
			t.Helper()
			if diff := cmp.Diff(r.list(want), r.list(got)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", what, diff)
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if len(in) > 0 && rapid.Bool().Draw(t, "take off") {
				i := rapid.IntRange(0, len(in)-1).Draw(t, "which")
				running.subtract(in[i])
				in = append(in[:i], in[i+1:]...)
			} else {
				amounts := r.amounts(listGenerator().Draw(t, "list"))
				running.add(amounts)
				in = append(in, amounts)
			}
			equal("running sums", recount(), running)
		}

		// Sums of sums: what a node requests joins and leaves a pool.
		var pool sums
		one := r.amounts(listGenerator().Draw(t, "pool"))
		pool.add(one)
		pool.addSums(running, +1)
		all := in
		in = append(in[:len(in):len(in)], one)
		equal("with another's sums", recount(), pool)
		if rapid.Bool().Draw(t, "leave as one") {
			pool.addSums(running, -1)
		} else {
			// One by one, as the pods of a node that stays end.
			for _, amounts := range all {
				pool.subtract(amounts)
				in = in[1:]
				equal("with one less", recount(), pool)
			}
		}
		in = [][]amount{one}
		equal("without them again", recount(), pool)

		pool.subtract(one)
		equal("with everything taken off", nil, pool)
		for i, sum := range pool {
			if sum.value != 0 || sum.terms != 0 {
				t.Fatalf("with everything taken off, %d of %s is left in %d terms", sum.value, r.names[i], sum.terms)
			}
		}
	})
}

// A resource of which somebody reports 0 is in the list; one that nobody
// reports is not.
func TestSumsKnowNothingFromZero(t *testing.T) {
	r := newRegistry()
	zero := r.amounts(corev1.ResourceList{"hugepages-1Gi": resource.MustParse("0")})
	one := r.amounts(corev1.ResourceList{"example.com/x": resource.MustParse("1")})
	var s sums
	s.add(zero)
	s.add(zero)
	s.add(one)
	s.subtract(one)
	s.subtract(zero)
	want := corev1.ResourceList{"hugepages-1Gi": resource.MustParse("0")}
	if diff := cmp.Diff(want, r.list(s)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

// The quantities look as people know them from nodes.
func TestListIsReadable(t *testing.T) {
	r := newRegistry()
	var s sums
	for range 2 {
		s.add(r.amounts(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("3064520Ki"), corev1.ResourcePods: resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"), "hugepages-2Mi": resource.MustParse("0"), "nvidia.com/gpu": resource.MustParse("1k"),
		}))
	}
	s.add(r.amounts(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}))
	got := map[corev1.ResourceName]string{}
	for name, q := range r.list(s) {
		got[name] = q.String()
	}
	want := map[corev1.ResourceName]string{
		"cpu": "8050m", "memory": "6129040Ki", "pods": "220", "ephemeral-storage": "20Gi", "hugepages-2Mi": "0", "nvidia.com/gpu": "2k",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("quantities (-want +got):\n%s", diff)
	}
}

func TestPercent(t *testing.T) {
	for _, tc := range []struct {
		name                   string
		requested, allocatable corev1.ResourceList
		want                   map[corev1.ResourceName]int32
	}{
		{"nothing of nothing", nil, nil, nil},
		{"a share is rounded down", cpuAndMemory("1999m", "2"), cpuAndMemory("2", "3"), map[corev1.ResourceName]int32{"cpu": 99, "memory": 66}},
		{"all of it is 100", cpuAndMemory("2", "3"), cpuAndMemory("2", "3"), map[corev1.ResourceName]int32{"cpu": 100, "memory": 100}},
		{"just below one percent is 0", cpuAndMemory("19m", ""), cpuAndMemory("2", ""), map[corev1.ResourceName]int32{"cpu": 0}},
		{"what nobody requests is 0", nil, cpuAndMemory("2", "1Gi"), map[corev1.ResourceName]int32{"cpu": 0, "memory": 0}},
		{"of more than there is, more than 100", cpuAndMemory("3", ""), cpuAndMemory("2", ""), map[corev1.ResourceName]int32{"cpu": 150}},
		{"a resource of which nothing is allocatable is left out", cpuAndMemory("1", "1"), cpuAndMemory("0", "2"), map[corev1.ResourceName]int32{"memory": 50}},
		{"as is one that no node has", cpuAndMemory("1", "1"), cpuAndMemory("", "2"), map[corev1.ResourceName]int32{"memory": 50}},
		{"large numbers do not overflow", cpuAndMemory("", "900Ti"), cpuAndMemory("", "1000Ti"), map[corev1.ResourceName]int32{"memory": 90}},
		{"an absurd level stops at the largest number there is", cpuAndMemory("", "1000Ti"), cpuAndMemory("", "1"), map[corev1.ResourceName]int32{"memory": math.MaxInt32}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRegistry()
			var requested, allocatable sums
			// allocatable first, so that its resources may have lower numbers than
			// requested knows of.
			allocatable.add(r.amounts(tc.allocatable))
			requested.add(r.amounts(tc.requested))
			if diff := cmp.Diff(tc.want, r.percent(requested, allocatable), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("percent (-want +got):\n%s", diff)
			}
		})
	}
}

// Sums that are near their limit are multiplied by 100 all the same.
func TestPercentOfTheLargestSums(t *testing.T) {
	r := newRegistry()
	var requested, allocatable sums
	for range 8000 {
		requested.add([]amount{{r.number("memory"), amountLimit / 2}})
		allocatable.add([]amount{{r.number("memory"), amountLimit}})
	}
	if diff := cmp.Diff(map[corev1.ResourceName]int32{"memory": 50}, r.percent(requested, allocatable)); diff != "" {
		t.Errorf("percent (-want +got):\n%s", diff)
	}
}

// Equal lists share one copy, different ones do not, and a copy that nobody
// uses any more is forgotten.
func TestShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known := shapes{}
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) amount {
			return amount{rapid.SampledFrom([]int{0, 1, 128, 256}).Draw(t, "resource"), rapid.SampledFrom([]int64{0, 1, 255, 256, 257, 1 << 40}).Draw(t, "value")}
		}), 0, 3)
		var taken []*shape
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "release") {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				known.release(taken[i])
				taken = append(taken[:i], taken[i+1:]...)
			} else {
				amounts := list.Draw(t, "amounts")
				s := known.take(amounts)
				if diff := cmp.Diff(amounts, s.amounts, cmp.AllowUnexported(amount{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("took the shape of others (-want +got):\n%s", diff)
				}
				taken = append(taken, s)
			}
			distinct := map[string]*shape{}
			for _, s := range taken {
				text := fmt.Sprint(s.amounts)
				if other, ok := distinct[text]; ok && other != s {
					t.Fatalf("two copies of %s", text)
				}
				distinct[text] = s
			}
			if len(known) != len(distinct) {
				t.Fatalf("%d shapes are known, %d are in use", len(known), len(distinct))
			}
		}
		for _, s := range taken {
			known.release(s)
		}
		if len(known) > 0 {
			t.Fatalf("nobody uses a shape, and yet %d are known", len(known))
		}
	})
}
