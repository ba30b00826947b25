// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// listGenerator generates resource lists, some of them with zero quantities.
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

// TestSumsEqualARecount checks that, after additions and subtractions in any order, the sums equal
// a recount of the remaining amounts, and that the map is empty when no amounts remain.
func TestSumsEqualARecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var running Sums
		var in [][]Amount
		recount := func() Sums {
			var s Sums
			for _, amounts := range in {
				s.Add(amounts)
			}
			return s
		}
		equal := func(what string, want, got Sums) {
			t.Helper()
			if diff := cmp.Diff(want.List(), got.List()); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", what, diff)
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if len(in) > 0 && rapid.Bool().Draw(t, "take off") {
				i := rapid.IntRange(0, len(in)-1).Draw(t, "which")
				running.Subtract(in[i])
				in = append(in[:i], in[i+1:]...)
			} else {
				amounts := AmountsOf(listGenerator().Draw(t, "list"))
				running.Add(amounts)
				in = append(in, amounts)
			}
			equal("running sums", recount(), running)
		}

		// Sums can be added to other sums, as when a node joins a pool and leaves it again.
		var pool Sums
		one := AmountsOf(listGenerator().Draw(t, "pool"))
		pool.Add(one)
		pool.AddSums(running)
		all := in
		in = append(in[:len(in):len(in)], one)
		equal("with the sums of another", recount(), pool)
		if rapid.Bool().Draw(t, "leave as one") {
			pool.SubtractSums(running)
		} else {
			// The amounts are subtracted individually, as when pods terminate on a node that stays
			// in the pool.
			for _, amounts := range all {
				pool.Subtract(amounts)
				in = in[1:]
				equal("with one removed", recount(), pool)
			}
		}
		in = [][]Amount{one}
		equal("without them again", recount(), pool)

		pool.Subtract(one)
		equal("with everything removed", nil, pool)
		if len(pool) > 0 {
			t.Fatalf("with everything removed, %v is left", pool)
		}
	})
}

// TestSumsKnowNothingFromZero checks that a resource with the quantity 0 is listed, whereas a
// resource that is not reported is left out.
func TestSumsKnowNothingFromZero(t *testing.T) {
	zero := AmountsOf(corev1.ResourceList{"hugepages-1Gi": resource.MustParse("0")})
	one := AmountsOf(corev1.ResourceList{"example.com/x": resource.MustParse("1")})
	var s Sums
	s.Add(zero)
	s.Add(zero)
	s.Add(one)
	s.Subtract(one)
	s.Subtract(zero)
	want := corev1.ResourceList{"hugepages-1Gi": resource.MustParse("0")}
	if diff := cmp.Diff(want, s.List()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

// TestListIsReadable checks that quantities are formatted as in a node's status.
func TestListIsReadable(t *testing.T) {
	var s Sums
	for range 2 {
		s.Add(AmountsOf(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("3064520Ki"), corev1.ResourcePods: resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"), "hugepages-2Mi": resource.MustParse("0"), "nvidia.com/gpu": resource.MustParse("1k"),
		}))
	}
	s.Add(AmountsOf(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}))
	got := map[corev1.ResourceName]string{}
	for name, q := range s.List() {
		got[name] = q.String()
	}
	want := map[corev1.ResourceName]string{
		"cpu": "8050m", "memory": "6129040Ki", "pods": "220", "ephemeral-storage": "20Gi", "hugepages-2Mi": "0", "nvidia.com/gpu": "2k",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("quantities (-want +got):\n%s", diff)
	}
}
