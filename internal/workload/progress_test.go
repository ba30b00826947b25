// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLastProgress checks that the time of the last progress is returned only for rollouts in
// progress, and that it is the same for an object trimmed for the cache.
func TestLastProgress(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	changed := noon.Add(-time.Hour)
	fields := []metav1.ManagedFieldsEntry{
		{Time: &metav1.Time{Time: changed}}, {Time: &metav1.Time{Time: changed.Add(-time.Hour)}}, {Time: &metav1.Time{Time: noon}, Subresource: "status"},
	}
	deployment := func(limit *int32, reason string, changes ...func(*appsv1.Deployment)) Object {
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 2, ManagedFields: fields},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), ProgressDeadlineSeconds: limit},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, Replicas: 4, AvailableReplicas: 3, Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Reason: "MinimumReplicasAvailable", LastUpdateTime: metav1.Time{Time: noon.Add(time.Minute)}},
				{Type: appsv1.DeploymentProgressing, Reason: reason, LastUpdateTime: metav1.Time{Time: noon}},
			}},
		}
		for _, change := range changes {
			change(d)
		}
		return d
	}
	statefulSet := func(current string, strategy appsv1.StatefulSetUpdateStrategyType) Object {
		return &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Generation: 2, ManagedFields: fields},
			Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: strategy}},
			Status:     appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 2, CurrentRevision: current, UpdateRevision: "b"},
		}
	}
	ten := new(int32(600))
	for _, tt := range []struct {
		name  string
		o     Object
		at    time.Time
		limit time.Duration
	}{
		{"Deployment: in progress", deployment(ten, "ReplicaSetUpdated"), noon, 10 * time.Minute},
		{"Deployment: given up", deployment(ten, "ProgressDeadlineExceeded"), noon, 10 * time.Minute},
		{"Deployment: its last pods start", deployment(ten, "ReplicaSetUpdated", func(d *appsv1.Deployment) {
			d.Status.UpdatedReplicas, d.Status.Replicas, d.Status.AvailableReplicas = 3, 3, 2
		}), noon, 10 * time.Minute},
		{"Deployment: complete", deployment(ten, "NewReplicaSetAvailable", func(d *appsv1.Deployment) {
			d.Status.UpdatedReplicas, d.Status.Replicas = 3, 3
		}), time.Time{}, 10 * time.Minute},
		{"Deployment: pods are added after its rollout", deployment(ten, "NewReplicaSetAvailable"), time.Time{}, 10 * time.Minute},
		{"Deployment: not observed", deployment(ten, "NewReplicaSetAvailable", func(d *appsv1.Deployment) { d.Generation = 3 }), changed, 10 * time.Minute},
		{"Deployment: paused", deployment(ten, "DeploymentPaused", func(d *appsv1.Deployment) { d.Spec.Paused = true }), time.Time{}, 10 * time.Minute},
		{"Deployment: without a limit", deployment(new(int32(math.MaxInt32)), "", func(d *appsv1.Deployment) { d.Status.Conditions = nil }), changed, 0},
		{"StatefulSet: in progress", statefulSet("a", appsv1.RollingUpdateStatefulSetStrategyType), changed, 0},
		{"StatefulSet: complete", statefulSet("b", appsv1.RollingUpdateStatefulSetStrategyType), time.Time{}, 0},
		{"StatefulSet: updated by deletion", statefulSet("a", appsv1.OnDeleteStatefulSetStrategyType), time.Time{}, 0},
		{"DaemonSet", &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{ManagedFields: fields}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3}}, time.Time{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, cached := range []bool{false, true} {
				if cached {
					kind, err := Of(tt.o)
					if err != nil {
						t.Fatal(err)
					}
					if err := kind.Trim(tt.o); err != nil {
						t.Fatal(err)
					}
				}
				if at, limit := LastProgress(tt.o); !at.Equal(tt.at) || limit != tt.limit {
					t.Errorf("cached %t: %s, limit %s, want %s, limit %s", cached, at, limit, tt.at, tt.limit)
				}
			}
		})
	}
}
