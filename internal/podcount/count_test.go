// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod returns a pod that is controlled by a ReplicaSet "web" with the given UID.
func pod(name string, owner types.UID, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: owner, Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func ownedBy(apiVersion, kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		o := &p.OwnerReferences[0]
		o.APIVersion, o.Kind, o.Name = apiVersion, kind, name
	}
}

func terminating(p *corev1.Pod)   { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func orphaned(p *corev1.Pod)      { p.OwnerReferences = nil }
func notControlled(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		name string
		pods []*corev1.Pod
		want int
	}{
		{name: "none", want: 0},
		{name: "in any phase but the last", want: 4, pods: []*corev1.Pod{
			pod("a", "1", phase(corev1.PodPending)), pod("b", "1"), pod("c", "1", phase(corev1.PodUnknown)), pod("d", "1", phase("")),
		}},
		{name: "ended ones do not count", want: 0, pods: []*corev1.Pod{
			pod("a", "1", phase(corev1.PodSucceeded)), pod("b", "1", phase(corev1.PodFailed)),
		}},
		{name: "terminating ones do not count", want: 1, pods: []*corev1.Pod{pod("a", "1", terminating), pod("b", "1")}},
		{name: "those of another ReplicaSet do not count", want: 1, pods: []*corev1.Pod{pod("a", "2"), pod("b", "1")}},
		{name: "an owner that is not the controller does not count", want: 0, pods: []*corev1.Pod{pod("a", "1", notControlled)}},
		{name: "orphans do not count", want: 0, pods: []*corev1.Pod{pod("a", "1", orphaned)}},
	} {
		var pods []corev1.Pod
		for _, p := range tt.pods {
			pods = append(pods, *p)
		}
		if got := count(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, pods); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestPatch(t *testing.T) {
	three := `{"metadata":{"labels":{"pod-count":"3"},"uid":"1"}}`
	for _, tt := range []struct {
		name     string
		labels   map[string]string
		selector *metav1.LabelSelector
		deleted  *metav1.Time
		want     string
	}{
		{name: "no labels at all", want: three},
		{name: "other labels", labels: map[string]string{"app": "web"}, want: three},
		{name: "another count", labels: map[string]string{Label: "2"}, want: three},
		{name: "written by hand", labels: map[string]string{Label: "03"}, want: three},
		{name: "right already", labels: map[string]string{Label: "3"}},
		{name: "being deleted", deleted: &metav1.Time{Time: time.Unix(1, 0)}},
		{name: "selected by something else", selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, want: three},
		{name: "selected by the label", labels: map[string]string{Label: "x"}, selector: &metav1.LabelSelector{MatchLabels: map[string]string{Label: "x"}}},
		{name: "selected by an expression", selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: Label, Operator: metav1.LabelSelectorOpDoesNotExist},
		}}},
	} {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "1", Labels: tt.labels, DeletionTimestamp: tt.deleted}}
		rs.Spec.Selector = tt.selector
		got, err := patch(rs, 3)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	got, err := patch(&appsv1.ReplicaSet{}, 0)
	if want := `{"metadata":{"labels":{"pod-count":"0"},"uid":""}}`; err != nil || string(got) != want {
		t.Errorf("no label and no pods: got %s, %v, want %s", got, err, want)
	}
}
