// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func TestLevel(t *testing.T) {
	cpu := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
	}
	pod := func(phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu("1500m")}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: cpu("4")}}
	requested, percent := Level(node, []*corev1.Pod{pod(corev1.PodRunning), pod(corev1.PodSucceeded)})
	if got := requested.Cpu().String(); got != "1500m" {
		t.Errorf("requested %s, want 1500m", got)
	}
	if diff := cmp.Diff(map[corev1.ResourceName]int32{"cpu": 37}, percent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// previewText is a preview in lines, for tables.
func previewText(previews []NodePreview) []string {
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	for _, p := range previews {
		for _, pool := range p.Joins {
			say("%s joins %s", p.Name, pool)
		}
		for _, pool := range p.Leaves {
			say("%s leaves %s", p.Name, pool)
		}
		for _, c := range p.Changes {
			foreign := ""
			if c.Foreign {
				foreign = " foreign"
			}
			say("%s %s %s %s %q->%q %s%s", p.Name, c.Action, c.Kind, c.Key, c.From, c.To, c.Pool, foreign)
		}
		for _, c := range p.ConflictsBegin {
			say("%s begins: %s wants %s %s of %s", p.Name, c.Pool, c.Kind, c.Key, c.Owner)
		}
		for _, c := range p.ConflictsEnd {
			say("%s ends: %s wants %s %s of %s", p.Name, c.Pool, c.Kind, c.Key, c.Owner)
		}
		if p.Restless {
			say("%s never rests", p.Name)
		}
	}
	return lines
}

func TestPreviewNodes(t *testing.T) {
	type pools = []*tidekeeperv1.NodePool
	worker := func() *PoolMaker { return MakePool("worker").CreatedAt(1).Labels("tier", "silver") }
	younger := func() *PoolMaker {
		return MakePool("young").CreatedAt(2).MatchLabels("zone", "a").Labels("tier", "gold")
	}
	for _, tc := range []struct {
		name          string
		before, after pools
		node          *NodeMaker
		want          []string
	}{
		{"nothing changes", pools{worker().Obj()}, pools{worker().Obj()}, MakeNode("n").Role("worker"), nil},
		{"what is under way is no change", pools{worker().NotInForce().NotVouching().Obj()}, pools{worker().Obj()}, MakeNode("n").Role("worker"), nil},
		{"a pool that is not there yet", nil, pools{worker().Annotations("a", "b").Taint("t", "", noSchedule).NotInForce().NotVouching().Obj()}, MakeNode("n").Role("worker"), []string{
			`n joins worker`, `n Add label tier ""->"silver" worker`, `n Add annotation a ""->"b" worker`, `n Add taint t:NoSchedule ""->"" worker`}},
		{"another value", pools{worker().Obj()}, pools{worker().Labels("tier", "gold").Obj()}, MakeNode("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{
			`n Change label tier "silver"->"gold" worker`}},
		{"a value that was somebody's", nil, pools{worker().Obj()}, MakeNode("n").Role("worker").Label("tier", "gold"), []string{
			`n joins worker`, `n Change label tier "gold"->"silver" worker foreign`}},
		{"a value that is right already", nil, pools{worker().Obj()}, MakeNode("n").Role("worker").Label("tier", "silver"), []string{`n joins worker`}},
		{"a key no longer asked for", pools{worker().Obj()}, pools{MakePool("worker").Vouching(slot{label, "tier"}).Obj()},
			MakeNode("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{`n Remove label tier "silver"->""`}},
		{"a pool that is deleted", pools{worker().Obj()}, pools{worker().Deleted().Obj()}, MakeNode("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{
			`n leaves worker`, `n Remove label tier "silver"->""`}},
		{"a selector that takes other nodes", pools{worker().Obj()}, pools{worker().MatchLabels("zone", "a").Obj()},
			MakeNode("n").Role("worker").LabelOf("worker", "tier", "silver"), []string{`n leaves worker`, `n Remove label tier "silver"->""`}},
		{"an older pool has the key", pools{worker().Obj()}, pools{worker().Obj(), younger().Obj()}, MakeNode("n").Role("worker").Label("zone", "a"), []string{
			`n joins young`, `n begins: young wants label tier of worker`}},
		{"the older pool lets go of it", pools{worker().Obj(), younger().Obj()}, pools{worker().Deleted().Obj(), younger().Obj()},
			MakeNode("n").Role("worker").Label("zone", "a").LabelOf("worker", "tier", "silver"), []string{
				`n leaves worker`, `n Change label tier "silver"->"gold" young`, `n ends: young wants label tier of worker`}},
		{"what it puts there makes the node another pool's", pools{younger().Obj()}, pools{younger().Obj(), worker().Labels("zone", "a").Obj()},
			MakeNode("n").Role("worker"), []string{`n joins worker`, `n joins young`, `n Add label tier ""->"silver" worker`, `n Add label zone ""->"a" worker`, `n begins: young wants label tier of worker`}},
		{"a pool that throws out its own members", nil, pools{MakePool("in").MatchExpression("x", "DoesNotExist").Labels("x", "1").Obj()},
			MakeNode("n"), []string{`n never rests`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := previewText(PreviewNodes(tc.before, tc.after, []corev1.Node{*tc.node.Obj()}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A preview of any change in any world says of each node just what differs
// between the two ends that the controllers come to.
func TestPreviewIsTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		changed := w.clone()
		act := rapid.SampledFrom([]string{"somebody applies a pool", "somebody deletes a pool"}).Draw(t, "change")
		changed.people()[act](t)
		nodes := []corev1.Node{}
		for _, name := range worldNodes {
			nodes = append(nodes, *w.nodes[name])
		}
		values := func(w *world) (list []*tidekeeperv1.NodePool) {
			for _, name := range worldPools {
				if pool := w.pools[name]; pool != nil {
					list = append(list, pool)
				}
			}
			return list
		}
		previews := PreviewNodes(values(w), values(changed), nodes)
		w.rest(t, "without")
		changed.rest(t, "with")
		for _, name := range worldNodes {
			want := shapeOf(w.nodes[name])
			i := slices.IndexFunc(previews, func(p NodePreview) bool { return p.Name == name })
			if i >= 0 {
				for _, c := range previews[i].Changes {
					at := slot{kind(c.Kind), c.Key}.String()
					if c.Action == ActionRemove {
						delete(want, at)
					} else {
						want[at] = c.To
					}
				}
			}
			got := shapeOf(changed.nodes[name])
			record := slot{annotation, tidekeeperv1.RecordAnnotation}.String()
			delete(want, record)
			delete(got, record)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("node %s (-foretold +came):\n%s", name, diff)
			}
		}
	})
}

func TestPreviewRuntimeClass(t *testing.T) {
	pool := func(handler string) *tidekeeperv1.NodePool {
		p := MakePool("gpu").Obj()
		p.Spec.Handler = handler
		return p
	}
	gone := pool("runc")
	gone.DeletionTimestamp = &metav1.Time{Time: planTime}
	other := pool("runc")
	other.Spec.Taints = []tidekeeperv1.Taint{{Key: "t", Effect: noSchedule}}
	ours := desiredRuntimeClass(pool("runc"))
	foreign := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-gpu"}, Handler: "x"}
	const name = "node-pool-gpu"
	for _, tc := range []struct {
		name          string
		before, after *tidekeeperv1.NodePool
		existing      *nodev1.RuntimeClass
		want          *RuntimeClassPreview
	}{
		{"none", nil, pool(""), nil, nil},
		{"a new one", nil, pool("runc"), nil, &RuntimeClassPreview{Name: name, Action: "Create", To: "runc"}},
		{"as it is", pool("runc"), pool("runc"), ours, nil},
		{"under way already", pool("runc"), pool("runc"), nil, nil},
		{"another handler", pool("runc"), pool("kata"), ours, &RuntimeClassPreview{Name: name, Action: "Replace", From: "runc", To: "kata"}},
		{"other taints", pool("runc"), other, ours, &RuntimeClassPreview{Name: name, Action: "Update", From: "runc", To: "runc"}},
		{"no handler any more", pool("runc"), pool(""), ours, &RuntimeClassPreview{Name: name, Action: "Delete", From: "runc"}},
		{"the pool goes", pool("runc"), gone, ours, &RuntimeClassPreview{Name: name, Action: "Delete", From: "runc"}},
		{"somebody else's", nil, pool("runc"), foreign, &RuntimeClassPreview{Name: name, Action: "Conflict", From: "x", To: "runc"}},
		{"somebody else's already", pool("runc"), pool("kata"), foreign, nil},
		{"somebody else's stays when the pool goes", pool("runc"), gone, foreign, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PreviewRuntimeClass(tc.before, tc.after, tc.existing)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreviewPods(t *testing.T) {
	owned := func(kind, name string, m *PodMaker) *corev1.Pod {
		yes := true
		p := m.Obj()
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(name), Controller: &yes}}
		return p
	}
	pod := func(name string) *PodMaker { return MakePod(name).On("n") }
	replica := owned("ReplicaSet", "web-5d4f", pod("web"))
	replica.Labels = map[string]string{"pod-template-hash": "5d4f"}
	static := owned("Node", "n", pod("static"))
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	leaving := owned("Job", "j", pod("leaving"))
	leaving.DeletionTimestamp = &metav1.Time{Time: planTime}
	seconds := int64(300)
	choosy := owned("StatefulSet", "db", pod("db-0"))
	choosy.Spec.NodeSelector = map[string]string{"tier": "silver"}
	tolerates := corev1.Toleration{Key: "t", Operator: corev1.TolerationOpExists}
	forAWhile := tolerates
	forAWhile.TolerationSeconds = &seconds

	execute := MakePool("p").MatchLabels("zone", "a").Taint("t", "1", noExecute)
	schedule := MakePool("p").MatchLabels("zone", "a").Taint("t", "", noSchedule)
	prefer := MakePool("p").MatchLabels("zone", "a").Taint("t", "", corev1.TaintEffectPreferNoSchedule)
	relabel := MakePool("p").MatchLabels("zone", "a").Labels("tier", "gold")
	node := func() *NodeMaker { return MakeNode("n").Label("zone", "a").Label("tier", "silver") }
	text := func(p PodPreview) string {
		return strings.TrimSpace(fmt.Sprintf("%s %s %s after %d because of %s static=%t", p.Name, p.Owner, p.Fate, p.AfterSeconds, p.Because, p.Static))
	}
	for _, tc := range []struct {
		name string
		pool *PoolMaker
		node *NodeMaker
		pod  *corev1.Pod
		want string
	}{
		{"evicted", execute, node(), replica, "web Deployment/web Evicted after 0 because of taint t=1:NoExecute static=false"},
		{"evicted after a while", execute, node(), owned("DaemonSet", "agent", pod("agent").Tolerating(forAWhile)), "agent DaemonSet/agent Evicted after 300 because of taint t=1:NoExecute static=false"},
		{"tolerates it", execute, node(), owned("Job", "j", pod("j").Tolerating(tolerates)), ""},
		{"nobody's", execute, node(), pod("bare").Obj(), "bare  Evicted after 0 because of taint t=1:NoExecute static=false"},
		{"static", execute, node(), static, "static  Evicted after 0 because of taint t=1:NoExecute static=true"},
		{"goes anyway", execute, node().Taint("other", "", noExecute), replica, ""},
		{"goes sooner", execute, node().Taint("other", "", noExecute), owned("Job", "j", pod("j").Tolerating(corev1.Toleration{Key: "other", Operator: "Exists", TolerationSeconds: &seconds})),
			"j Job/j Evicted after 0 because of taint t=1:NoExecute static=false"},
		{"ended", execute, node(), owned("Job", "j", pod("j").Phase(corev1.PodSucceeded)), ""},
		{"on its way out", execute, node(), leaving, ""},
		{"on another node", execute, node(), owned("Job", "j", MakePod("j").On("other")), ""},
		{"stranded", schedule, node(), replica, "web Deployment/web Stranded after 0 because of taint t:NoSchedule static=false"},
		{"not stranded, as it tolerates it", schedule, node(), owned("Job", "j", pod("j").Tolerating(tolerates)), ""},
		{"not stranded, as nobody would make another", schedule, node(), pod("bare").Obj(), ""},
		{"not stranded, as no scheduler is asked", schedule, node(), static, ""},
		{"stranded already", schedule, node().Taint("other", "", noSchedule), replica, ""},
		{"a wish is not an order", prefer, node(), replica, ""},
		{"its label is gone", relabel, node(), choosy, "db-0 StatefulSet/db Stranded after 0 because of labels static=false"},
		{"a label that it does not ask for", relabel, node(), replica, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			previews := PreviewNodes(nil, []*tidekeeperv1.NodePool{tc.pool.Obj()}, []corev1.Node{*tc.node.Obj()})
			if diff := cmp.Diff([]string{"n"}, NodesThatMovePods(previews)); diff != "" {
				t.Errorf("nodes whose pods matter (-want +got):\n%s", diff)
			}
			got := ""
			for _, p := range PreviewPods(previews, []corev1.Pod{*tc.pod}) {
				got += text(p)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if names := NodesThatMovePods(PreviewNodes(nil, []*tidekeeperv1.NodePool{MakePool("p").MatchLabels("zone", "a").Annotations("a", "b").Obj()}, []corev1.Node{*node().Obj()})); len(names) > 0 {
		t.Errorf("an annotation has the pods of %s looked at", names)
	}
}
