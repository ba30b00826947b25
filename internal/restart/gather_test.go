// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

func TestAbsenceOf(t *testing.T) {
	started := time.Date(2026, 1, 31, 3, 0, 0, 0, time.UTC)
	active := &tidekeeperv1.ActiveRestart{StartedTime: metav1.Time{Time: started}}
	node := &corev1.Node{}
	node.Name = "dead"
	node.Spec.Taints = []corev1.Taint{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
	}
	notReady := map[string]*corev1.Node{"dead": node}
	pod := func(node string, created time.Time, tolerations ...corev1.Toleration) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Tolerations: tolerations}}
		p.CreationTimestamp = metav1.Time{Time: created}
		return p
	}
	before, after := started.Add(-time.Hour), started.Add(time.Minute)
	// usual is the toleration that the DaemonSet controller adds to every pod. all is a toleration
	// of every taint.
	usual := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for _, tt := range []struct {
		name   string
		pods   []*corev1.Pod
		active *tidekeeperv1.ActiveRestart
		want   workload.Absence
	}{
		{name: "no pod there", pods: []*corev1.Pod{pod("alive", before, usual)}, active: active},
		{name: "Kubernetes does not count it", pods: []*corev1.Pod{pod("dead", before, usual)}, active: active, want: workload.Absence{Nodes: 1}},
		{name: "Kubernetes counts it", pods: []*corev1.Pod{pod("dead", before, all)}, active: active, want: workload.Absence{Nodes: 1, Desired: 1, Old: 1}},
		{name: "no restart in progress", pods: []*corev1.Pod{pod("dead", before, all)}, want: workload.Absence{Nodes: 1, Desired: 1, Old: 1}},
		{name: "it was replaced", pods: []*corev1.Pod{pod("dead", before, all), pod("dead", after, all)}, active: active, want: workload.Absence{Nodes: 1, Desired: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := absenceOf(tt.pods, notReady, tt.active)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("absence (-want +got):\n%s", diff)
			}
		})
	}
}

// sentLate is a reader for a Deployment to which the tick is sent while its ReplicaSets are listed.
// If undone is set, the Deployment was rolled back before.
type sentLate struct {
	client.Reader
	deployment *appsv1.Deployment
	tick       string
	undone     bool
}

func (s *sentLate) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.deployment.DeepCopyInto(object.(*appsv1.Deployment))
	return nil
}

func (s *sentLate) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	annotations := map[string]string{tidekeeperv1.RestartedAtAnnotation: s.tick}
	if !s.undone {
		s.deployment.Spec.Template.Annotations = annotations
	}
	set := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}}}
	set.Spec.Template.Annotations = annotations
	list.(*appsv1.ReplicaSetList).Items = []appsv1.ReplicaSet{set}
	return nil
}

// TestSentWhileRevisionsAreRead checks that a tick that the previous leader sent after the target
// was read counts as in progress, and not as rolled back.
func TestSentWhileRevisionsAreRead(t *testing.T) {
	tick := time.Date(2026, 1, 31, 3, 0, 0, 0, time.UTC)
	for name, undone := range map[string]bool{"sent meanwhile": false, "rolled back": true} {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		restart := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		restart.Spec.TargetRef = tidekeeperv1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		restart.Spec.ProgressDeadlineSeconds = 600
		restart.Status.Active = &tidekeeperv1.ActiveRestart{
			ScheduledTime: metav1.NewTime(tick), StartedTime: metav1.NewTime(tick), Trigger: tidekeeperv1.TriggerRequest, TargetRef: &restart.Spec.TargetRef, TargetUID: "1",
		}
		r := &targets{apiReader: &sentLate{deployment: deployment, tick: workload.FormatTime(tick), undone: undone}}
		in := decision.Input{Restart: restart, Now: tick.Add(time.Second), Live: true}
		target, err := r.read(t.Context(), r.apiReader, restart, &in)
		if err != nil {
			t.Fatal(err)
		}
		if d := decision.Decide(in); d.Needs != decision.NeedRolledOut {
			t.Fatalf("%s: %+v, want that it asks whether the tick was ever rolled out", name, d)
		}
		if _, err := r.readRolledOut(t.Context(), restart, target, &in); err != nil {
			t.Fatal(err)
		}
		if d := decision.Decide(in); (d.Status.Active == nil) != undone {
			t.Errorf("%s: it is in progress: %t, want %t; records %+v", name, d.Status.Active != nil, !undone, d.Records)
		}
	}
}
