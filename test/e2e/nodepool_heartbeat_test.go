// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// report updates a node's status, like a kubelet, and an annotation of the node, like an agent.
func report(ctx context.Context, node string, number int64) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"agent.example.com/report":"%d"}},"status":{"conditions":[{"type":"Reporting","status":"True","reason":"Report%d"}]}}`, number, number)
	return errors.Join(
		cluster.Patch(ctx, framework.Node(node), client.RawPatch(types.StrategicMergePatchType, []byte(patch))),
		cluster.Status().Patch(ctx, framework.Node(node), client.RawPatch(types.StrategicMergePatchType, []byte(patch))),
	)
}

// lost returns the number of a manager's node patches that failed because the node had changed, and
// the number that the API server rejected for their content.
func lost(t *testing.T, manager *framework.Manager) (conflicts, refused int) {
	t.Helper()
	m := manager.ReadMetrics(t)
	return int(m.SumOf("tidekeeper_nodepool_node_writes_total", "result", "conflict")), int(m.SumOf("rest_client_requests_total", "code", "422"))
}

// TestNodePool_ReportsCostNoWrite checks that none of the manager's node patches fails because of
// the kubelets' status reports, regardless of their frequency.
func TestNodePool_ReportsCostNoWrite(t *testing.T) {
	manager := cluster.StartManager(t)
	nodes := addMembers(t, "report", 3)
	// The first patch may conflict with the controller manager, which takes taints from a new node
	// and adds its first annotation.
	p := pool("report")
	p.Spec.Annotations = map[string]tidekeeperv1.AnnotationValue{"example.com/report": "<0> é"}
	cluster.Apply(t, p)
	healthyWith(t, "report", 3)
	conflictsBefore, refusedBefore := lost(t, manager)
	var reports atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	for _, node := range nodes {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := report(ctx, node, reports.Add(1)); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const edits = 10
	for i := range edits {
		cluster.Change(t, p, func() {
			p.Spec.Labels["example.com/report"] = tidekeeperv1.LabelValue(fmt.Sprint(i + 1))
			p.Spec.Annotations["example.com/report"] = tidekeeperv1.AnnotationValue(fmt.Sprintf("<%d> é", i+1))
		})
		want := shapeFrom("report")
		want.Labels["example.com/report"] = string(p.Spec.Labels["example.com/report"])
		want.Annotations = map[string]string{"example.com/report": string(p.Spec.Annotations["example.com/report"])}
		for _, node := range nodes {
			eventuallyShape(t, node, want)
		}
		framework.Eventually(t, "the nodes have reported meanwhile", func() error {
			if got, least := reports.Load(), int64(len(nodes)*(i+1)); got < least {
				return fmt.Errorf("there were %d reports: the test needs %d to tell anything", got, least)
			}
			return nil
		})
	}
	written := func() error {
		count := manager.ReadMetrics(t).SumOf("tidekeeper_nodepool_node_writes_total", "result", "written")
		return diff(float64(len(nodes)*(edits+1)), count)
	}
	framework.Eventually(t, "each edit is one write of each node", written)
	conflicts, refused := lost(t, manager)
	if conflicts -= conflictsBefore; conflicts > 0 || refused > refusedBefore {
		t.Errorf("beside %d reports, %d patches were lost to conflicts, and %d requests refused", reports.Load(), conflicts, refused-refusedBefore)
	}
	if err := written(); err != nil {
		t.Errorf("writes: %v", err)
	}
}

// TestNodePool_EditsInBetween edits a node just before the manager patches it without knowing the
// edit. A patch that does not depend on the edited fields must succeed. Any other patch must be
// rejected, and repeated once the manager knows the edit.
func TestNodePool_EditsInBetween(t *testing.T) {
	late := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	for _, tc := range []struct {
		name string
		edit func(*corev1.Node)
		// wins is set if the API server must reject the patch because of the edit. want turns the
		// shape with the pool's settings into the expected final shape.
		wins bool
		want func(*shape)
	}{
		{name: "report", edit: func(n *corev1.Node) { n.Annotations["agent.example.com/report"] = "1" }},
		{
			name: "taint", wins: true,
			edit: func(n *corev1.Node) {
				theirs := corev1.Taint{Key: "example.com/theirs", Value: "1", Effect: corev1.TaintEffectNoExecute, TimeAdded: &late}
				n.Spec.Taints = append([]corev1.Taint{theirs}, n.Spec.Taints...)
			},
			want: func(s *shape) { s.Taints = append([]string{"example.com/theirs=1:NoExecute"}, s.Taints...) },
		},
		{
			name: "label", wins: true,
			edit: func(n *corev1.Node) { n.Labels["example.com/theirs"] = "1" },
			want: func(s *shape) { s.Labels["example.com/theirs"] = "1" },
		},
		{name: "annotation", wins: true, edit: func(n *corev1.Node) { n.Annotations["example.com/note"] = "theirs" }},
		{name: "record", wins: true, edit: func(n *corev1.Node) { delete(n.Annotations, tidekeeperv1.OwnershipAnnotation) }},
		{
			name: "membership", wins: true,
			edit: func(n *corev1.Node) { delete(n.Labels, role("between-membership")) },
			want: func(s *shape) { *s = clean },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proxy := cluster.StartProxy(t, "")
			manager := cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
			name := "between-" + tc.name
			node := framework.Node(addMembers(t, name, 1)[0])
			p := pool(name)
			cluster.Apply(t, p)
			healthyWith(t, name, 1)
			conflictsBefore, refusedBefore := lost(t, manager) // The first patch may conflict, as in TestNodePool_ReportsCostNoWrite.

			proxy.Freeze(t, "match: {resources: [nodes]}")
			cluster.Change(t, node, func() { tc.edit(node) })
			cluster.Change(t, p, func() {
				p.Spec.Taints = append(p.Spec.Taints, tidekeeperv1.Taint{Key: "example.com/more", Effect: corev1.TaintEffectNoSchedule})
				p.Spec.Annotations = map[string]tidekeeperv1.AnnotationValue{"example.com/note": "ours"}
			})
			want := shapeFrom(name)
			want.Taints = append(want.Taints, "example.com/more=:NoSchedule")
			want.Annotations = map[string]string{"example.com/note": "ours"}
			if tc.want != nil {
				tc.want(&want)
			}
			if tc.wins {
				before := shapeOf(t, node.Name)
				framework.Eventually(t, "the patch has lost", func() error {
					if conflicts, _ := lost(t, manager); conflicts == conflictsBefore {
						return errors.New("it has not")
					}
					return nil
				})
				if err := diff(before, shapeOf(t, node.Name)); err != nil {
					t.Errorf("the node has changed: %v", err)
				}
			} else {
				eventuallyShape(t, node.Name, want)
				if conflicts, refused := lost(t, manager); conflicts > conflictsBefore || refused > refusedBefore {
					t.Errorf("%d patches were lost to conflicts, and %d requests refused", conflicts-conflictsBefore, refused-refusedBefore)
				}
			}
			proxy.Thaw(t)
			eventuallyShape(t, node.Name, want)
			manager.AssertIdle(t)
			manager.AssertSound(t)
		})
	}
}

// TestJSONPatchAsTheAPIServerHasIt checks the behavior of the API server's JSON patches, beyond RFC
// 6902, that the manager's node patches rely on.
func TestJSONPatchAsTheAPIServerHasIt(t *testing.T) {
	with := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "json-patch-with", Namespace: metav1.NamespaceDefault,
		Labels: map[string]string{"a": "1", "example.com/b": ""}, Annotations: map[string]string{"example.com/note": "<é> & \"\u2028\" ~/\\"},
	}}
	without := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "json-patch-without", Namespace: metav1.NamespaceDefault}}
	cluster.Apply(t, with)
	cluster.Apply(t, without)
	for _, tc := range []struct {
		name, patch string
		o           *corev1.ConfigMap
		refused     bool
	}{
		{name: "a map that is missing is null", o: without, patch: `{"op":"test","path":"/metadata/labels","value":null}`},
		{name: "a map that exists is not null", o: with, refused: true, patch: `{"op":"test","path":"/metadata/labels","value":null}`},
		{name: "an entry that is missing is null", o: with, patch: `{"op":"test","path":"/metadata/annotations/example.com~1other","value":null}`},
		{name: "an entry that exists is not null", o: with, refused: true, patch: `{"op":"test","path":"/metadata/annotations/example.com~1note","value":null}`},
		{name: "a map is equal in any order", o: with, patch: `{"op":"test","path":"/metadata/labels","value":{"example.com/b":"","a":"1"}}`},
		{name: "a part of a map is not the map", o: with, refused: true, patch: `{"op":"test","path":"/metadata/labels","value":{"a":"1"}}`},
		{name: "a text is equal as Go writes it", o: with, patch: `{"op":"test","path":"/metadata/annotations/example.com~1note","value":"\u003cé\u003e \u0026 \"\u2028\" ~/\\"}`},
		{name: "an entry of a map that is missing", o: without, refused: true, patch: `{"op":"test","path":"/metadata/annotations/example.com~1note","value":"1"}`},
		{name: "null in a map that is missing", o: without, refused: true, patch: `{"op":"test","path":"/metadata/annotations/example.com~1note","value":null}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := cluster.Patch(t.Context(), tc.o.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte("["+tc.patch+"]")), client.DryRunAll)
			// A rejected patch has the same status code as an invalid node. The manager's code that
			// distinguishes them does not look at the message.
			if tc.refused != apierrors.IsInvalid(err) || !tc.refused && err != nil {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}
