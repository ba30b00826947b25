// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

func TestIsTerminalAndActive(t *testing.T) {
	deleted := metav1.Unix(1_700_000_000, 0)
	for phase, terminal := range map[corev1.PodPhase]bool{
		"": false, corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false,
		corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		if got := IsTerminal(pod); got != terminal {
			t.Errorf("IsTerminal in phase %q = %t, want %t", phase, got, terminal)
		}
		if got := IsActive(pod); got == terminal {
			t.Errorf("IsActive in phase %q = %t, want %t", phase, got, !terminal)
		}
		pod.DeletionTimestamp = &deleted
		if got := IsTerminal(pod); got != terminal {
			t.Errorf("IsTerminal in phase %q while deleted = %t, want %t", phase, got, terminal)
		}
		if IsActive(pod) {
			t.Errorf("a deleted pod in phase %q is active", phase)
		}
	}
}

func TestCondition(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.Unix(1_700_000_000+second, 0) }
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, since metav1.Time, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: since, Reason: reason}
	}
	for _, tt := range []struct {
		name       string
		conditions []corev1.PodCondition
		reason     string
		isTrue     bool
	}{
		{name: "none", reason: "nil"},
		{name: "of another type", conditions: []corev1.PodCondition{condition(corev1.PodScheduled, "True", at(0), "scheduled")}, reason: "nil"},
		{name: "one", conditions: []corev1.PodCondition{condition(corev1.PodReady, "True", at(0), "only")}, reason: "only", isTrue: true},
		{
			name:       "of several the last to change",
			conditions: []corev1.PodCondition{condition(corev1.PodReady, "False", at(1), "later"), condition(corev1.PodReady, "True", at(0), "earlier")},
			reason:     "later",
		},
		{
			name:       "of two that changed together, always the same",
			conditions: []corev1.PodCondition{condition(corev1.PodReady, "True", at(0), "true"), condition(corev1.PodReady, "False", at(0), "false")},
			reason:     "true", isTrue: true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: tt.conditions}}
			for range 2 {
				reason := "nil"
				if c := Condition(pod, corev1.PodReady); c != nil {
					reason = c.Reason
				}
				if reason != tt.reason || IsConditionTrue(pod, corev1.PodReady) != tt.isTrue {
					t.Errorf("condition %s, true %t; want %s, %t", reason, IsConditionTrue(pod, corev1.PodReady), tt.reason, tt.isTrue)
				}
				// The order of the conditions must not matter.
				if n := len(tt.conditions); n > 1 {
					pod.Status.Conditions = []corev1.PodCondition{tt.conditions[n-1], tt.conditions[0]}
				}
			}
		})
	}
}

func TestContainerStatus(t *testing.T) {
	statuses := []corev1.ContainerStatus{{Name: "a", RestartCount: 1}, {Name: "b"}, {Name: "a", RestartCount: 2}}
	if got := ContainerStatus(statuses, "a"); got != &statuses[0] {
		t.Errorf("of two it returns %v", got)
	}
	if got := ContainerStatus(statuses, "c"); got != nil {
		t.Errorf("for a container without a status it returns %v", got)
	}
}

func TestWorkload(t *testing.T) {
	yes, no := new(true), new(false)
	for _, tt := range []struct {
		name               string
		hash               string
		owners             []metav1.OwnerReference
		wantKind, wantName string
	}{
		{name: "nothing owns it"},
		{name: "something owns it without controlling it", owners: []metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: no}}},
		{name: "its controller", owners: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "other"}, {Kind: "StatefulSet", Name: "db-0", Controller: yes}}, wantKind: "StatefulSet", wantName: "db-0"},
		{name: "a static pod's node", owners: []metav1.OwnerReference{{Kind: "Node", Name: "n", Controller: yes}}, wantKind: "Node", wantName: "n"},
		{name: "a Deployment", hash: "7d4b9", owners: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-7d4b9", Controller: yes}}, wantKind: "Deployment", wantName: "web"},
		{name: "a Deployment with dashes", hash: "7d4b9", owners: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-api-2-7d4b9", Controller: yes}}, wantKind: "Deployment", wantName: "web-api-2"},
		{name: "a ReplicaSet without a Deployment", owners: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-api", Controller: yes}}, wantKind: "ReplicaSet", wantName: "web-api"},
		{name: "a ReplicaSet with a label of its own", hash: "7d4b9", owners: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: yes}}, wantKind: "ReplicaSet", wantName: "web"},
		{name: "another kind with that label", hash: "7d4b9", owners: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db-7d4b9", Controller: yes}}, wantKind: "StatefulSet", wantName: "db-7d4b9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tt.owners}}
			if tt.hash != "" {
				pod.Labels = map[string]string{workload.Deployment.TemplateHashLabel: tt.hash}
			}
			if kind, name := Workload(pod); kind != tt.wantKind || name != tt.wantName {
				t.Errorf("%s/%s, want %s/%s", kind, name, tt.wantKind, tt.wantName)
			}
			pod.Name = "self"
			want := tt.wantKind + "/" + tt.wantName
			if tt.wantKind == "" {
				want = "Pod/self"
			}
			if got := WorkloadName(pod); got != want {
				t.Errorf("the workload is %s, want %s", got, want)
			}
			if got, want := IsReplaced(pod), tt.wantKind != "" && tt.wantKind != "Node"; got != want {
				t.Errorf("is replaced: %t, want %t", got, want)
			}
		})
	}
}

// TestConditionWithoutTimes checks that a condition without a transition time, which a pod that was
// never scheduled may have, counts as the oldest.
func TestConditionWithoutTimes(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady}, {Type: corev1.PodReady, LastTransitionTime: metav1.NewTime(time.Unix(1, 0)), Reason: "timed"},
	}}}
	if c := Condition(pod, corev1.PodReady); c.Reason != "timed" {
		t.Errorf("%+v", c)
	}
}
