// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
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
	pod := func(node string, created time.Time, tolerations ...corev1.Toleration) corev1.Pod {
		p := corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Tolerations: tolerations}}
		p.CreationTimestamp = metav1.Time{Time: created}
		return p
	}
	before, after := started.Add(-time.Hour), started.Add(time.Minute)
	// usual is what the DaemonSet controller adds to every pod, all is what many pods have.
	usual := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for _, tt := range []struct {
		name   string
		pods   []corev1.Pod
		active *tidekeeperv1.ActiveRestart
		want   workload.Absence
	}{
		{name: "no pod there", pods: []corev1.Pod{pod("alive", before, usual)}, active: active},
		{name: "Kubernetes does not count it", pods: []corev1.Pod{pod("dead", before, usual)}, active: active, want: workload.Absence{Nodes: 1}},
		{name: "Kubernetes counts it", pods: []corev1.Pod{pod("dead", before, all)}, active: active, want: workload.Absence{Nodes: 1, Desired: 1, Old: 1}},
		{name: "no restart in progress", pods: []corev1.Pod{pod("dead", before, all)}, want: workload.Absence{Nodes: 1, Desired: 1, Old: 1}},
		{name: "it was replaced", pods: []corev1.Pod{pod("dead", before, all), pod("dead", after, all)}, active: active, want: workload.Absence{Nodes: 1, Desired: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := absenceOf(tt.pods, notReady, tt.active)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("absence (-want +got):\n%s", diff)
			}
		})
	}
}
