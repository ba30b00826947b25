// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLastSuccessBefore(t *testing.T) {
	day := noon.Add(-24 * time.Hour)
	for _, tc := range []struct {
		last *metav1.Time
		want bool
	}{{nil, true}, {at(day.Add(-time.Second)), true}, {at(day), false}, {at(noon), false}} {
		r := aRestart("web", "@daily")
		r.Status.LastSuccessfulTime = tc.last
		if got := LastSuccessBefore(&r, day); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.last, got, tc.want)
		}
	}
}
