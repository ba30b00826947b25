// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestPreviewPods(t *testing.T) {
	owned := func(kind, name string, m *objects.PodBuilder) *corev1.Pod {
		yes := true
		p := m.Obj()
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(name), Controller: &yes}}
		return p
	}
	pod := func(name string) *objects.PodBuilder { return objects.Pod(name).On("n") }
	replica := owned("ReplicaSet", "web-5d4f", pod("web"))
	replica.Labels = map[string]string{"pod-template-hash": "5d4f"}
	static := owned("Node", "n", pod("static"))
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	leaving := owned("Job", "j", pod("leaving"))
	leaving.DeletionTimestamp = &metav1.Time{Time: objects.PatchTime}
	seconds := int64(300)
	choosy := owned("StatefulSet", "db", pod("db-0"))
	choosy.Spec.NodeSelector = map[string]string{"tier": "silver"}
	tolerates := corev1.Toleration{Key: "t", Operator: corev1.TolerationOpExists}
	forAWhile := tolerates
	forAWhile.TolerationSeconds = &seconds

	execute := objects.Pool("p").MatchLabels("zone", "a").Taint("t", "1", objects.NoExecute)
	gently := objects.Pool("p").MatchLabels("zone", "a").TaintWithinBudgets("t", "1")
	both := objects.PoolFrom(gently.Obj()).Taint("u", "", objects.NoExecute)
	toleratesU := corev1.Toleration{Key: "u", Operator: corev1.TolerationOpExists}
	schedule := objects.Pool("p").MatchLabels("zone", "a").Taint("t", "", objects.NoSchedule)
	prefer := objects.Pool("p").MatchLabels("zone", "a").Taint("t", "", corev1.TaintEffectPreferNoSchedule)
	relabel := objects.Pool("p").MatchLabels("zone", "a").Labels("tier", "gold")
	node := func() *objects.NodeBuilder { return objects.Node("n").Label("zone", "a").Label("tier", "silver") }
	text := func(p Pod) string {
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s after %d because of %s static=%t", p.Name, p.Owner, p.Outcome, p.AfterSeconds, p.Because, p.Static))
		if p.WithinBudgets {
			text += " within budgets"
		}
		return text
	}
	for _, tc := range []struct {
		name string
		pool *objects.PoolBuilder
		node *objects.NodeBuilder
		pod  *corev1.Pod
		want string
	}{
		{"evicted", execute, node(), replica, "web Deployment/web Evicted after 0 because of taint t=1:NoExecute static=false"},
		{"evicted after a while", execute, node(), owned("DaemonSet", "agent", pod("agent").Tolerating(forAWhile)), "agent DaemonSet/agent Evicted after 300 because of taint t=1:NoExecute static=false"},
		{"within budgets", gently, node(), replica, "web Deployment/web Evicted after 0 because of taint t=1:NoExecute static=false within budgets"},
		{"within budgets, after a while", gently, node(), owned("Job", "j", pod("j").Tolerating(forAWhile)), "j Job/j Evicted after 300 because of taint t=1:NoExecute static=false within budgets"},
		{"a static pod has no budget", gently, node(), static, "static  Evicted after 0 because of taint t=1:NoExecute static=true"},
		{"another taint does not wait for budgets", both, node(), replica, "web Deployment/web Evicted after 0 because of taint t=1:NoExecute static=false"},
		{"but tolerates that", both, node(), owned("Job", "j", pod("j").Tolerating(toleratesU)), "j Job/j Evicted after 0 because of taint t=1:NoExecute static=false within budgets"},
		{"on a node that is being emptied", gently, node().TaintOf("p", "t", "1", objects.NoSchedule).Closed("p", "t", objects.Epoch), owned("Job", "j", pod("j")), "j Job/j Evicted after 0 because of taint t=1:NoExecute static=false within budgets"},
		{"tolerates it", execute, node(), owned("Job", "j", pod("j").Tolerating(tolerates)), ""},
		{"without a workload", execute, node(), pod("bare").Obj(), "bare  Evicted after 0 because of taint t=1:NoExecute static=false"},
		{"static", execute, node(), static, "static  Evicted after 0 because of taint t=1:NoExecute static=true"},
		{"evicted anyway", execute, node().Taint("other", "", objects.NoExecute), replica, ""},
		{"evicted sooner", execute, node().Taint("other", "", objects.NoExecute), owned("Job", "j", pod("j").Tolerating(corev1.Toleration{Key: "other", Operator: "Exists", TolerationSeconds: &seconds})),
			"j Job/j Evicted after 0 because of taint t=1:NoExecute static=false"},
		{"ended", execute, node(), owned("Job", "j", pod("j").Phase(corev1.PodSucceeded)), ""},
		{"already being deleted", execute, node(), leaving, ""},
		{"on another node", execute, node(), owned("Job", "j", objects.Pod("j").On("other")), ""},
		{"not reschedulable", schedule, node(), replica, "web Deployment/web NotReschedulable after 0 because of taint t:NoSchedule static=false"},
		{"reschedulable, as it tolerates it", schedule, node(), owned("Job", "j", pod("j").Tolerating(tolerates)), ""},
		{"without a workload that would replace it", schedule, node(), pod("bare").Obj(), ""},
		{"static, and not scheduled", schedule, node(), static, ""},
		{"not reschedulable already", schedule, node().Taint("other", "", objects.NoSchedule), replica, ""},
		{"PreferNoSchedule does not prevent it", prefer, node(), replica, ""},
		{"its label is removed", relabel, node(), choosy, "db-0 StatefulSet/db NotReschedulable after 0 because of labels static=false"},
		{"a label that it does not select", relabel, node(), replica, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			previews := Nodes(nil, []*tidekeeperv1.NodePool{tc.pool.Obj()}, []corev1.Node{*tc.node.Obj()})
			if diff := cmp.Diff([]string{"n"}, NodesWithAffectedPods(previews)); diff != "" {
				t.Errorf("nodes with affected pods (-want +got):\n%s", diff)
			}
			got := ""
			for _, p := range Pods(previews, []corev1.Pod{*tc.pod}) {
				got += text(p)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if names := NodesWithAffectedPods(Nodes(nil, []*tidekeeperv1.NodePool{objects.Pool("p").MatchLabels("zone", "a").Annotations("a", "b").Obj()}, []corev1.Node{*node().Obj()})); len(names) > 0 {
		t.Errorf("an annotation affects the pods of %s", names)
	}
}

// TestPodsOfDeletedRuntimeClasses checks that pods are reported if their controllers could not
// create them again after the deletion of their RuntimeClass.
func TestPodsOfDeletedRuntimeClasses(t *testing.T) {
	owned := func(p corev1.Pod) corev1.Pod {
		p.Namespace = "shop"
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: new(true)}}
		p.Spec.NodeName = "n1"
		p.Spec.RuntimeClassName = new("node-pool-x")
		return p
	}
	named := func(name string) corev1.Pod { return owned(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}) }
	alone, other, done := named("alone"), named("other"), named("done")
	alone.OwnerReferences, other.Spec.RuntimeClassName, done.Status.Phase = nil, new("kata"), corev1.PodSucceeded
	before := []Pod{
		{Namespace: "shop", Name: "evicted", Outcome: OutcomeEvicted},
		{Namespace: "shop", Name: "stuck", Outcome: OutcomeNotReschedulable, Because: "labels"},
	}
	got := WithDeletedRuntimeClasses(before, []string{"node-pool-x"}, []corev1.Pod{named("evicted"), named("stuck"), named("web"), alone, other, done})
	want := []Pod{
		{Namespace: "shop", Name: "evicted", Outcome: OutcomeEvicted, NotRecreatable: "RuntimeClass node-pool-x"},
		{Namespace: "shop", Name: "stuck", Node: "n1", Owner: "StatefulSet/db", Outcome: OutcomeNotRecreatable, Because: "RuntimeClass node-pool-x"},
		{Namespace: "shop", Name: "web", Node: "n1", Owner: "StatefulSet/db", Outcome: OutcomeNotRecreatable, Because: "RuntimeClass node-pool-x"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
