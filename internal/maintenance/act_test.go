// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
)

// oneNode is a client whose cache has a single node, and which counts the patches of the node.
type oneNode struct {
	client.Client
	node    *corev1.Node
	patches int
}

func (c *oneNode) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.node.DeepCopyInto(into.(*corev1.Node))
	return nil
}

func (c *oneNode) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	c.patches++
	return nil
}

// TestActOnChangedNode checks that a node which has changed since the decision is not patched, such as a
// node of which the cache gets the manager's own patch between the decision and the action. No black-box
// test can bring this about: it takes milliseconds.
func TestActOnChangedNode(t *testing.T) {
	m := &tidekeeperv1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "1"}}
	due := []corev1.Taint{{Key: tidekeeperv1.MaintenanceDueTaint, Value: "1", Effect: corev1.TaintEffectPreferNoSchedule}}
	for _, tc := range []struct {
		name   string
		change func(*corev1.Node)
		want   int
	}{
		{"unchanged", func(*corev1.Node) {}, 1},
		{"a heartbeat", func(n *corev1.Node) { n.ResourceVersion = "2" }, 1},
		{"already due", func(n *corev1.Node) { n.Spec.Taints = due }, 0},
		{"cordoned by hand", func(n *corev1.Node) { n.Spec.Unschedulable = true }, 0},
		{"another node of the same name", func(n *corev1.Node) { n.UID = types.UID("other") }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", ResourceVersion: "1"}}
			decided := decision.NodeOf(node, 3)
			tc.change(node)
			c := &oneNode{node: node}
			r := &reconciler{client: c, clock: clock.RealClock{}}
			if _, err := r.act(t.Context(), m, []decision.Action{{Kind: decision.MarkDue, Node: decided}}); err != nil || c.patches != tc.want {
				t.Errorf("%d patches, want %d; error %v", c.patches, tc.want, err)
			}
		})
	}
}
