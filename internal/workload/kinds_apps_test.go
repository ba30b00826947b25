// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestProgress compares the progress of each kind with the output of kubectl rollout status for the
// same object.
func TestProgress(t *testing.T) {
	three, partition := int32(3), int32(1)
	generation2 := metav1.ObjectMeta{Generation: 2}
	deployment := func(status appsv1.DeploymentStatus) Object {
		return &appsv1.Deployment{ObjectMeta: generation2, Spec: appsv1.DeploymentSpec{Replicas: &three}, Status: status}
	}
	statefulSet := func(partition *int32, status appsv1.StatefulSetStatus) Object {
		s := &appsv1.StatefulSet{ObjectMeta: generation2, Spec: appsv1.StatefulSetSpec{Replicas: &three}, Status: status}
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: partition}
		return s
	}
	daemonSet := func(status appsv1.DaemonSetStatus) Object {
		return &appsv1.DaemonSet{ObjectMeta: generation2, Status: status}
	}
	for _, tt := range []struct {
		name string
		o    Object
		want Progress
	}{
		{"Deployment: not observed", deployment(appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 3}), Progress{Updating: true, Message: "its controller has not observed the latest change yet"}},
		{"Deployment: some updated", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, Replicas: 4, AvailableReplicas: 3}), Progress{Updating: true, Message: "1 of 3 pods are updated"}},
		{"Deployment: old ones remain", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 4, AvailableReplicas: 4}), Progress{Updating: true, Message: "1 old pods remain"}},
		{"Deployment: not available", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 2}), Progress{Message: "2 of 3 pods are available"}},
		{"Deployment: complete", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 3}), Progress{Available: true}},
		{
			"Deployment: stuck",
			deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, Replicas: 4, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: "ProgressDeadlineExceeded"}}}),
			Progress{Updating: true, Exceeded: true, Message: "1 of 3 pods are updated"},
		},
		{"StatefulSet: never observed", statefulSet(nil, appsv1.StatefulSetStatus{}), Progress{Updating: true, Message: "its controller has not observed the latest change yet"}},
		{"StatefulSet: not observed", statefulSet(nil, appsv1.StatefulSetStatus{ObservedGeneration: 1, ReadyReplicas: 3}), Progress{Updating: true, Message: "its controller has not observed the latest change yet"}},
		{"StatefulSet: not ready", statefulSet(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 2, CurrentRevision: "b", UpdateRevision: "b"}), Progress{Message: "2 of 3 pods are ready"}},
		{"StatefulSet: some updated", statefulSet(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"}), Progress{Updating: true, Available: true, Message: "1 of 3 pods are updated"}},
		{"StatefulSet: complete", statefulSet(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 3, CurrentRevision: "b", UpdateRevision: "b"}), Progress{Available: true}},
		{"StatefulSet: some of a partition updated", statefulSet(&partition, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"}), Progress{Updating: true, Available: true, Message: "1 of 2 pods are updated"}},
		{"StatefulSet: a partition complete", statefulSet(&partition, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 2, CurrentRevision: "a", UpdateRevision: "b"}), Progress{Available: true}},
		{"DaemonSet: not observed", daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 1}), Progress{Updating: true, Message: "its controller has not observed the latest change yet"}},
		{"DaemonSet: some updated", daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 2, NumberAvailable: 3}), Progress{Updating: true, Message: "2 of 3 pods are updated"}},
		{"DaemonSet: not available", daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 2}), Progress{Message: "2 of 3 pods are available"}},
		{"DaemonSet: complete", daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3}), Progress{Available: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, read(t, tt.o).Rollout); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAvailability checks that, with the update strategy OnDelete, pods created from an earlier
// template count as available.
func TestAvailability(t *testing.T) {
	three := int32(3)
	statefulSet := func(ready int32) Object {
		return &appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, ReadyReplicas: ready, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"},
		}
	}
	daemonSet := func(available int32) Object {
		return &appsv1.DaemonSet{
			Spec:   appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}},
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, UpdatedNumberScheduled: 1, NumberAvailable: available},
		}
	}
	for _, tt := range []struct {
		name string
		o    Object
		want Progress
	}{
		{"StatefulSet", statefulSet(3), Progress{Available: true}},
		{"StatefulSet: not ready", statefulSet(2), Progress{Message: "2 of 3 pods are ready"}},
		{"DaemonSet", daemonSet(3), Progress{Available: true}},
		{"DaemonSet: not available", daemonSet(2), Progress{Message: "2 of 3 pods are available"}},
	} {
		if s := read(t, tt.o); s.Availability != tt.want || !s.Rollout.Updating {
			t.Errorf("%s: %+v, want %+v in the middle of a rollout", tt.name, s, tt.want)
		}
	}
}

// TestRollsPast checks rollsPast against the limits applied by Kubernetes' DaemonSet controller.
func TestRollsPast(t *testing.T) {
	amount := func(text string) *intstr.IntOrString { return new(intstr.Parse(text)) }
	for _, tt := range []struct {
		name        string
		rolling     *appsv1.RollingUpdateDaemonSet
		unavailable int32
		want        bool
	}{
		{"the default is one", nil, 1, false},
		{"one of two", &appsv1.RollingUpdateDaemonSet{MaxUnavailable: amount("2")}, 1, true},
		{"two of two", &appsv1.RollingUpdateDaemonSet{MaxUnavailable: amount("2")}, 2, false},
		{"percent is rounded up", &appsv1.RollingUpdateDaemonSet{MaxUnavailable: amount("11%")}, 1, true},
		{"never less than one", &appsv1.RollingUpdateDaemonSet{MaxUnavailable: amount("0")}, 0, true},
		{"a surge", &appsv1.RollingUpdateDaemonSet{MaxUnavailable: amount("0"), MaxSurge: amount("3")}, 2, true},
		{"all of a surge", &appsv1.RollingUpdateDaemonSet{MaxUnavailable: amount("0"), MaxSurge: amount("2")}, 2, false},
		{"no surge", &appsv1.RollingUpdateDaemonSet{MaxUnavailable: amount("2"), MaxSurge: amount("0%")}, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &appsv1.DaemonSet{
				Spec:   appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: tt.rolling}},
				Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 10},
			}
			if got := rollsPast(d, tt.unavailable); got != tt.want {
				t.Errorf("rollsPast is %t, want %t", got, tt.want)
			}
		})
	}
}

func TestState(t *testing.T) {
	marks := metav1.ObjectMeta{Name: "web", UID: "1", Annotations: map[string]string{tidekeeperv1.LastTickAnnotation: "tick"}}
	template := func(o *metav1.ObjectMeta) {
		o.Annotations = map[string]string{tidekeeperv1.RestartedAtAnnotation: "template"}
	}
	d := &appsv1.Deployment{ObjectMeta: marks, Spec: appsv1.DeploymentSpec{Paused: true}}
	s := &appsv1.StatefulSet{ObjectMeta: marks, Spec: appsv1.StatefulSetSpec{UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}}}
	ds := &appsv1.DaemonSet{ObjectMeta: marks, Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 7}}
	d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	template(&d.Spec.Template.ObjectMeta)
	template(&s.Spec.Template.ObjectMeta)
	template(&ds.Spec.Template.ObjectMeta)
	for o, want := range map[Object]State{
		d:  {Kind: "Deployment", Paused: true, Deleting: true, Pods: 1},
		s:  {Kind: "StatefulSet", OnDelete: true, Pods: 1},
		ds: {Kind: "DaemonSet", OnDelete: true, Pods: 7, PerNode: true},
	} {
		want.Name, want.UID, want.LastTick, want.RestartedAt = "web", "1", "tick", "template"
		got := *read(t, o)
		if got.OnDelete == (got.Availability == Progress{}) {
			t.Errorf("%s: OnDelete is %t, and its availability %+v", want.Kind, got.OnDelete, got.Availability)
		}
		got.Rollout, got.Availability, got.Updates = Progress{}, Progress{}, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Kind, diff)
		}
	}
}

func read(t *testing.T, o Object) *State {
	t.Helper()
	kind, err := Of(o)
	if err != nil {
		t.Fatal(err)
	}
	state, err := kind.State(o)
	if err != nil {
		t.Fatal(err)
	}
	return state
}
