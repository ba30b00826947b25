// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestRollout holds each kind's states against what kubectl rollout status
// says of them.
func TestRollout(t *testing.T) {
	three, partition := int32(3), int32(1)
	generation2 := metav1.ObjectMeta{Generation: 2}
	deployment := func(status appsv1.DeploymentStatus) client.Object {
		return &appsv1.Deployment{ObjectMeta: generation2, Spec: appsv1.DeploymentSpec{Replicas: &three}, Status: status}
	}
	statefulSet := func(partition *int32, status appsv1.StatefulSetStatus) client.Object {
		s := &appsv1.StatefulSet{ObjectMeta: generation2, Spec: appsv1.StatefulSetSpec{Replicas: &three}, Status: status}
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: partition}
		return s
	}
	daemonSet := func(status appsv1.DaemonSetStatus) client.Object {
		return &appsv1.DaemonSet{ObjectMeta: generation2, Status: status}
	}
	for _, tt := range []struct {
		name string
		o    client.Object
		want rollout
	}{
		{"Deployment: not observed", deployment(appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 3}), rollout{updating: true, message: "its latest change has not been seen yet"}},
		{"Deployment: some updated", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, Replicas: 4, AvailableReplicas: 3}), rollout{updating: true, message: "1 of 3 pods are updated"}},
		{"Deployment: old ones remain", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 4, AvailableReplicas: 4}), rollout{updating: true, message: "1 old pods are still there"}},
		{"Deployment: not available", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 2}), rollout{message: "2 of 3 pods are available"}},
		{"Deployment: complete", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, AvailableReplicas: 3}), rollout{available: true}},
		{
			"Deployment: stuck",
			deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, Replicas: 4, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: "ProgressDeadlineExceeded"}}}),
			rollout{updating: true, exceeded: true, message: "1 of 3 pods are updated"},
		},
		{"StatefulSet: never observed", statefulSet(nil, appsv1.StatefulSetStatus{}), rollout{updating: true, message: "its latest change has not been seen yet"}},
		{"StatefulSet: not observed", statefulSet(nil, appsv1.StatefulSetStatus{ObservedGeneration: 1, ReadyReplicas: 3}), rollout{updating: true, message: "its latest change has not been seen yet"}},
		{"StatefulSet: not ready", statefulSet(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 2, CurrentRevision: "b", UpdateRevision: "b"}), rollout{message: "2 of 3 pods are ready"}},
		{"StatefulSet: some updated", statefulSet(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"}), rollout{updating: true, available: true, message: "1 of 3 pods are updated"}},
		{"StatefulSet: complete", statefulSet(nil, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 3, CurrentRevision: "b", UpdateRevision: "b"}), rollout{available: true}},
		{"StatefulSet: some of a partition updated", statefulSet(&partition, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"}), rollout{updating: true, available: true, message: "1 of 2 pods are updated"}},
		{"StatefulSet: a partition complete", statefulSet(&partition, appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 3, UpdatedReplicas: 2, CurrentRevision: "a", UpdateRevision: "b"}), rollout{available: true}},
		{"DaemonSet: not observed", daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 1}), rollout{updating: true, message: "its latest change has not been seen yet"}},
		{"DaemonSet: some updated", daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 2, NumberAvailable: 3}), rollout{updating: true, message: "2 of 3 pods are updated"}},
		{"DaemonSet: not available", daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 2}), rollout{message: "2 of 3 pods are available"}},
		{"DaemonSet: complete", daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3}), rollout{available: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, targetOf(tt.o).rollout, cmp.AllowUnexported(rollout{})); diff != "" {
				t.Errorf("rollout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargetOf(t *testing.T) {
	marks := metav1.ObjectMeta{Name: "web", UID: "1", Annotations: map[string]string{tidekeeperv1.LastTickAnnotation: "tick"}}
	template := func(o *metav1.ObjectMeta) {
		o.Annotations = map[string]string{tidekeeperv1.RestartedAtAnnotation: "template"}
	}
	d := &appsv1.Deployment{ObjectMeta: marks, Spec: appsv1.DeploymentSpec{Paused: true}}
	s := &appsv1.StatefulSet{ObjectMeta: marks, Spec: appsv1.StatefulSetSpec{UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}}}
	ds := &appsv1.DaemonSet{ObjectMeta: marks, Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 7}}
	d.DeletionTimestamp = &metav1.Time{Time: at("03:00:00")}
	template(&d.Spec.Template.ObjectMeta)
	template(&s.Spec.Template.ObjectMeta)
	template(&ds.Spec.Template.ObjectMeta)
	for o, want := range map[client.Object]target{
		d:  {kind: KindDeployment, paused: true, deleting: true, pods: 1},
		s:  {kind: KindStatefulSet, onDelete: true, pods: 1},
		ds: {kind: KindDaemonSet, onDelete: true, pods: 7},
	} {
		want.name, want.uid, want.lastTick, want.restartedAt = "web", "1", "tick", "template"
		got := *targetOf(o)
		got.rollout = rollout{}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{}, rollout{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.kind, diff)
		}
	}
}

// FuzzNotBefore: whatever stands in an annotation that anybody may write, it
// serves a tick only if it is a time from the tick on and not in the future.
func FuzzNotBefore(f *testing.F) {
	for _, seed := range []string{"", "2026-06-10T03:00:00Z", "2026-06-10T05:00:00+02:00", "2026-06-10T02:59:59Z", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "now", "2026-06-10T03:00:00.5Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tick, now := at("03:00:00"), at("03:10:00")
		got, ok := notBefore(tick, text, now)
		if ok && (got.Before(tick) || got.After(now)) {
			t.Errorf("%q serves the tick, as %s", text, got)
		}
		if want, err := time.Parse(time.RFC3339, text); err == nil && !want.Before(tick) && !want.After(now) && !ok {
			t.Errorf("%q does not serve the tick", text)
		}
	})
}
