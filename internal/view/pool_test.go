// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestDeletingPool checks that the status of a pool with a deletion timestamp shows the deletion,
// even if no manager is running.
func TestDeletingPool(t *testing.T) {
	for _, tt := range []struct {
		name       string
		finalizers []string
		condition  metav1.Condition
		want       string
	}{
		{"no manager", []string{tidekeeperv1.NodePoolFinalizer}, metav1.Condition{Status: "True", Reason: "Healthy", Message: "all is well"},
			"deletion requested 2m ago, waiting for the finalizer " + tidekeeperv1.NodePoolFinalizer + "; is a manager running?"},
		{"a manager at work", []string{tidekeeperv1.NodePoolFinalizer}, metav1.Condition{Status: "False", Reason: "Deleting", Message: "removing its settings from 3 nodes"},
			"deletion requested 2m ago: removing its settings from 3 nodes"},
		{"another's finalizer", []string{tidekeeperv1.NodePoolFinalizer, "example.com/x"}, metav1.Condition{},
			"deletion requested 2m ago, waiting for the finalizers " + tidekeeperv1.NodePoolFinalizer + ", example.com/x; is a manager running?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool := &tidekeeperv1.NodePool{}
			pool.DeletionTimestamp, pool.Finalizers = at(noon.Add(-2*time.Minute)), tt.finalizers
			if tt.condition.Reason != "" {
				tt.condition.Type = "Ready"
				pool.Status.Conditions = []metav1.Condition{tt.condition}
			}
			want := Status{Reason: "Deleting", Severity: Warning, Message: tt.want}
			if diff := cmp.Diff(want, PoolOf(pool, noon).Status); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnswersOfPools checks the severities of the conditions that a pool's spec must enable. If
// nodes cannot be drained, the severity is only a warning.
func TestAnswersOfPools(t *testing.T) {
	for _, tt := range []struct {
		is                  metav1.ConditionStatus
		headroom, drainable Severity
	}{{metav1.ConditionTrue, Good, Good}, {metav1.ConditionFalse, Bad, Warning}, {metav1.ConditionUnknown, Neutral, Neutral}} {
		pool := &tidekeeperv1.NodePool{}
		for _, name := range []string{"Headroom", "Drainable"} {
			pool.Status.Conditions = append(pool.Status.Conditions, metav1.Condition{Type: name, Status: tt.is, Reason: name + "Reason", Message: "why"})
		}
		shown := PoolOf(pool, noon)
		want := []*Status{{Reason: "HeadroomReason", Message: "why", Severity: tt.headroom}, {Reason: "DrainableReason", Message: "why", Severity: tt.drainable}}
		if diff := cmp.Diff(want, []*Status{shown.Headroom, shown.Drainable}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.is, diff)
		}
	}
	if shown := PoolOf(&tidekeeperv1.NodePool{}, noon); shown.Headroom != nil || shown.Drainable != nil {
		t.Errorf("a pool that does not ask has %+v", shown)
	}
}
