// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestPodRestart checks that the pods created by a restart are indexed under their own workload
// only: two workloads in a namespace may restart at the same tick, and the name of one workload may
// be a prefix of the other name.
func TestPodRestart(t *testing.T) {
	const tick = "2026-06-10T03:00:00Z"
	owner := func(kind, name string, controls bool) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: kind, Name: name, Controller: &controls}
	}
	for _, tt := range []struct {
		name   string
		owners []metav1.OwnerReference
		hash   string
		at     string
		want   []string
	}{
		{name: "of a Deployment", owners: []metav1.OwnerReference{owner("ReplicaSet", "web-7d4b9", true)}, hash: "7d4b9", at: tick, want: []string{RestartKey("Deployment", "web", tick)}},
		{name: "of a Deployment with dashes", owners: []metav1.OwnerReference{owner("ReplicaSet", "web-api-2-7d4b9", true)}, hash: "7d4b9", at: tick, want: []string{RestartKey("Deployment", "web-api-2", tick)}},
		{name: "of a ReplicaSet of its own", owners: []metav1.OwnerReference{owner("ReplicaSet", "web", true)}, at: tick, want: []string{RestartKey("ReplicaSet", "web", tick)}},
		{name: "of a StatefulSet", owners: []metav1.OwnerReference{owner("StatefulSet", "db-0", true)}, at: tick, want: []string{RestartKey("StatefulSet", "db-0", tick)}},
		{name: "of a DaemonSet", owners: []metav1.OwnerReference{owner("DaemonSet", "log", true)}, at: tick, want: []string{RestartKey("DaemonSet", "log", tick)}},
		{name: "the owner that controls it counts", owners: []metav1.OwnerReference{owner("DaemonSet", "other", false), owner("DaemonSet", "log", true)}, at: tick, want: []string{RestartKey("DaemonSet", "log", tick)}},
		{name: "no restart made it", owners: []metav1.OwnerReference{owner("DaemonSet", "log", true)}},
		{name: "nothing controls it", at: tick},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys := PodRestartOf(func(*corev1.Pod) string { return tt.at })
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tt.owners}}
			if tt.hash != "" {
				pod.Labels = map[string]string{workload.Deployment.TemplateHashLabel: tt.hash}
			}
			got := keys(pod)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
