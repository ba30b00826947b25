// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestHuman(t *testing.T) {
	for _, tt := range []struct {
		name         corev1.ResourceName
		amount, want string
	}{
		{"memory", "100000Gi", "97.7Ti"},
		{"memory", "1073741824", "1Gi"},
		{"memory", "0", "0"},
		{"ephemeral-storage", "1536", "1.5Ki"},
		{"hugepages-2Mi", "2Mi", "2Mi"},
		{"cpu", "1500m", "1.5"},
		{"cpu", "20k", "20000"},
		{"nvidia.com/gpu", "4", "4"},
	} {
		if got := Human(tt.name, resource.MustParse(tt.amount)); got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.amount, tt.name, got, tt.want)
		}
	}
}

func TestSummary(t *testing.T) {
	for _, tt := range []struct {
		name                   corev1.ResourceName
		requested, allocatable string
		want                   string
	}{
		{"cpu", "1500m", "8", "1.5/8 (18%)"},
		{"cpu", "0", "8", "0/8 (0%)"},
		{"cpu", "123456m", "160", "123/160 (77%)"},
		{"cpu", "1m", "5k", "0.001/5000 (0%)"},
		{"cpu", "1250m", "3920m", "1.25/3.92 (31%)"},
		{"memory", "600Mi", "6129040Ki", "0.586/5.85Gi (10%)"},
		{"memory", "1Gi", "184026512Ki", "1/176Gi (0%)"},
		{"memory", "3Ki", "64Ki", "3/64Ki (4%)"},
		{"memory", "512", "1023", "512/1023 (50%)"},
		{"memory", "1Mi", "200Ti", "<0.001/200Ti (0%)"},
		{"memory", "300Gi", "200Gi", "300/200Gi (150%)"},
		{"pods", "12", "220", "12/220 (5%)"},
		{"pods", "149999", "150000", "149999/150000 (99%)"},
		{"pods", "0", "0", ""},
	} {
		var requested, allocatable Sums
		requested.Add(AmountsOf(corev1.ResourceList{tt.name: resource.MustParse(tt.requested)}))
		allocatable.Add(AmountsOf(corev1.ResourceList{tt.name: resource.MustParse(tt.allocatable)}))
		if got := Summary(tt.name, requested.List(), allocatable.List(), Percent(requested, allocatable)); got != tt.want {
			t.Errorf("%s of %s %s: got %q, want %q", tt.requested, tt.allocatable, tt.name, got, tt.want)
		}
	}
}
