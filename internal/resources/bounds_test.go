// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestOffersAreBounded(t *testing.T) {
	m := objects.Node("n")
	for i := range 1_000 {
		m.Capacity(corev1.ResourceName(fmt.Sprintf("a.io/%03d", i)), "1")
	}
	capacity, allocatable := Offered(m.Capacity(corev1.ResourceCPU, "4").Capacity(corev1.ResourceMemory, "1Gi").Obj())
	if len(capacity) != maxNodeResources || len(allocatable) != maxNodeResources {
		t.Fatalf("%d and %d resources count; want %d", len(capacity), len(allocatable), maxNodeResources)
	}
	for _, want := range []corev1.ResourceName{"cpu", "memory", "a.io/000", "a.io/061"} {
		if !slices.ContainsFunc(capacity, func(a Amount) bool { return a.Resource == want }) {
			t.Errorf("%s does not count", want)
		}
	}
}

// TestLevelNamesAreBounded checks the resources of a pool that has more resources than its status
// may report: resources offered by a single node must be the first to be left out.
func TestLevelNamesAreBounded(t *testing.T) {
	var capacity Sums
	for i := range 3 * maxPoolResources {
		capacity.Add([]Amount{{corev1.ResourceName(fmt.Sprintf("a.io/%03d", i)), 1}})
	}
	for range 2 {
		capacity.Add([]Amount{{"z.io/device", 1}})
	}
	capacity.Add([]Amount{{corev1.ResourceCPU, 1}})
	names := ReportedNames(capacity, nil)
	if len(names) != maxPoolResources || names[0] != corev1.ResourceCPU || names[1] != "z.io/device" || names[2] != "a.io/000" {
		t.Errorf("reports %d, the first of which are %v", len(names), names[:3])
	}
}
