// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestOvertaken checks that the patch is rejected if another client has changed a value that the
// plan depends on, and that an accepted patch preserves other concurrent changes.
func TestOvertaken(t *testing.T) {
	read := func() *corev1.Node {
		return objects.Node("a").Label("os", "linux").Annotation("agent", "1").Annotation("note", "old").
			Taint("first", "1", objects.NoSchedule).LabelOf("worker", "zone", "1").Obj()
	}
	tainting := objects.Pool("worker").Labels("zone", "2").Annotations("note", "new", "more", "1").Taint("gpu", "1", objects.NoSchedule).Member()
	labelling := objects.Pool("worker").Labels("zone", "2").Member()
	for _, tc := range []struct {
		name   string
		pool   plan.PoolOnNode
		change func(*corev1.Node)
		wins   bool
	}{
		{name: "a heartbeat", pool: tainting, change: func(n *corev1.Node) {
			n.ResourceVersion = "43"
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(objects.PatchTime)}}
		}},
		{name: "an annotation of an agent", pool: tainting, change: func(n *corev1.Node) { n.Annotations["agent"] = "2" }},
		{name: "one more", pool: tainting, change: func(n *corev1.Node) { n.Annotations["another"] = "2" }},
		{name: "a cordon, without its taint", pool: tainting, change: func(n *corev1.Node) { n.Spec.Unschedulable = true }},
		{name: "a taint, beside a pool that has none", pool: labelling, change: func(n *corev1.Node) { n.Spec.Taints = nil }},
		{name: "a taint more", pool: tainting, wins: true, change: func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "second", Effect: objects.NoExecute})
		}},
		{name: "a taint less", pool: tainting, wins: true, change: func(n *corev1.Node) { n.Spec.Taints = nil }},
		{name: "another value of a taint", pool: tainting, wins: true, change: func(n *corev1.Node) { n.Spec.Taints[0].Value = "2" }},
		{name: "another time of a taint", pool: tainting, wins: true, change: func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = &metav1.Time{Time: objects.PatchTime} }},
		{name: "a label that the pool sets", pool: tainting, wins: true, change: func(n *corev1.Node) { n.Labels["zone"] = "3" }},
		{name: "a label, by which another pool may select the node", pool: labelling, wins: true, change: func(n *corev1.Node) { n.Labels["disk"] = "ssd" }},
		{name: "no labels", pool: labelling, wins: true, change: func(n *corev1.Node) { n.Labels = nil }},
		{name: "an annotation that the pool sets", pool: tainting, wins: true, change: func(n *corev1.Node) { n.Annotations["note"] = "theirs" }},
		{name: "one that was not there", pool: tainting, wins: true, change: func(n *corev1.Node) { n.Annotations["more"] = "theirs" }},
		{name: "the ownership record", pool: labelling, wins: true, change: func(n *corev1.Node) { n.Annotations[tidekeeperv1.OwnershipAnnotation] = "{}" }},
		{name: "no annotations", pool: labelling, wins: true, change: func(n *corev1.Node) { n.Annotations = nil }},
		{name: "another node of that name", pool: labelling, wins: true, change: func(n *corev1.Node) { n.UID = "another" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := read()
			nodePlan := plan.ForNode(node, []plan.PoolOnNode{tc.pool})
			now := read()
			tc.change(now)
			after, err := objects.ApplyPatch(now, nodePlan.Patch(node, objects.PatchTime))
			if tc.wins {
				if err == nil {
					t.Error("the patch is accepted")
				}
				return
			}
			if err != nil {
				t.Fatalf("the patch is refused: %v", err)
			}
			if diff := cmp.Diff(nodePlan.ApplyTo(now, objects.PatchTime), after, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the node afterwards (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOvertakenAnyhow checks, for random concurrent changes, that an accepted patch has the same
// result as a new plan for the changed node.
func TestOvertakenAnyhow(t *testing.T) {
	names := []string{"a", "b/c", "~d"}
	anyOf := func(t *rapid.T, what string) map[string]string {
		return rapid.MapOf(rapid.SampledFrom(names), rapid.SampledFrom([]string{"", "1", "<2>"})).Draw(t, what)
	}
	effects := []corev1.TaintEffect{objects.NoSchedule, objects.PreferNoSchedule}
	change := func(t *rapid.T, n *corev1.Node, what string) {
		switch rapid.IntRange(0, 3).Draw(t, what) {
		case 0:
			n.Labels = anyOf(t, "labels")
		case 1:
			record, recorded := n.Annotations[tidekeeperv1.OwnershipAnnotation]
			n.Annotations = anyOf(t, "annotations")
			if recorded && rapid.Bool().Draw(t, "the record stays") {
				n.Annotations[tidekeeperv1.OwnershipAnnotation] = record
			}
		case 2:
			n.Spec.Taints = nil
			for name, value := range anyOf(t, "taints") {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: name, Value: value, Effect: rapid.SampledFrom(effects).Draw(t, "effect")})
			}
		default:
			n.Annotations = maps.Clone(n.Annotations)
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			n.Annotations["agent"] = "1"
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		pairs := func(what string) (all []string) {
			entries := anyOf(t, what)
			for _, name := range slices.Sorted(maps.Keys(entries)) {
				all = append(all, name, entries[name])
			}
			return all
		}
		maker := objects.Pool("worker").Labels(pairs("pool's labels")...).Annotations(pairs("pool's annotations")...)
		for name, value := range anyOf(t, "pool's taints") {
			maker.Taint(name, value, objects.NoSchedule)
		}
		for _, name := range names {
			maker.Managing(setting.LabelKey(name), setting.AnnotationKey(name), setting.TaintKey(name, "NoSchedule"))
		}
		pools := []plan.PoolOnNode{maker.Member()}
		node := objects.Node("n").Obj()
		change(t, node, "first")
		change(t, node, "second")
		if rapid.Bool().Draw(t, "the pool had other settings") {
			before := plan.ForNode(node, []plan.PoolOnNode{
				objects.Pool("worker").Labels(pairs("labels before")...).Annotations(pairs("annotations before")...).Member(),
			})
			node = objects.ApplyPlan(t, &before, node)
		}
		nodePlan := plan.ForNode(node, pools)
		objects.ApplyPlan(t, &nodePlan, node)

		now := node.DeepCopy()
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			change(t, now, "change")
		}
		after, err := objects.ApplyPatch(now, nodePlan.Patch(node, objects.PatchTime))
		if err != nil {
			if cmp.Equal(node, now, cmpopts.EquateEmpty()) {
				t.Fatalf("nothing has changed, and it is refused: %v", err)
			}
			return
		}
		fresh := plan.ForNode(now, pools)
		if diff := cmp.Diff(fresh.ApplyTo(now, time.Time{}), after, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("it is accepted, and not what would have been planned (-want +got):\n%s", diff)
		}
	})
}
