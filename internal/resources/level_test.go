// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestPercent(t *testing.T) {
	for _, tc := range []struct {
		name                   string
		requested, allocatable corev1.ResourceList
		want                   map[corev1.ResourceName]int32
	}{
		{"nothing of nothing", nil, nil, nil},
		{"a share is rounded down", objects.CPUAndMemory("1999m", "2"), objects.CPUAndMemory("2", "3"), map[corev1.ResourceName]int32{"cpu": 99, "memory": 66}},
		{"all of it is 100", objects.CPUAndMemory("2", "3"), objects.CPUAndMemory("2", "3"), map[corev1.ResourceName]int32{"cpu": 100, "memory": 100}},
		{"just below one percent is 0", objects.CPUAndMemory("19m", ""), objects.CPUAndMemory("2", ""), map[corev1.ResourceName]int32{"cpu": 0}},
		{"without requests it is 0", nil, objects.CPUAndMemory("2", "1Gi"), map[corev1.ResourceName]int32{"cpu": 0, "memory": 0}},
		{"more than is allocatable is more than 100", objects.CPUAndMemory("3", ""), objects.CPUAndMemory("2", ""), map[corev1.ResourceName]int32{"cpu": 150}},
		{"a resource with nothing allocatable is left out", objects.CPUAndMemory("1", "1"), objects.CPUAndMemory("0", "2"), map[corev1.ResourceName]int32{"memory": 50}},
		{"as is one that no node has", objects.CPUAndMemory("1", "1"), objects.CPUAndMemory("", "2"), map[corev1.ResourceName]int32{"memory": 50}},
		{"large numbers do not overflow", objects.CPUAndMemory("", "900Ti"), objects.CPUAndMemory("", "1000Ti"), map[corev1.ResourceName]int32{"memory": 90}},
		{"an absurd utilization is limited to the maximum of an int32", objects.CPUAndMemory("", "1000Ti"), objects.CPUAndMemory("", "1"), map[corev1.ResourceName]int32{"memory": math.MaxInt32}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var requested, allocatable Sums
			allocatable.Add(AmountsOf(tc.allocatable))
			requested.Add(AmountsOf(tc.requested))
			if diff := cmp.Diff(tc.want, Percent(requested, allocatable), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("percent (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPercentOfTheLargestSums checks that multiplying the largest possible sums by 100 does not
// overflow.
func TestPercentOfTheLargestSums(t *testing.T) {
	var requested, allocatable Sums
	for range 8000 {
		requested.Add([]Amount{{"memory", amountLimit / 2}})
		allocatable.Add([]Amount{{"memory", amountLimit}})
	}
	if diff := cmp.Diff(map[corev1.ResourceName]int32{"memory": 50}, Percent(requested, allocatable)); diff != "" {
		t.Errorf("percent (-want +got):\n%s", diff)
	}
}
