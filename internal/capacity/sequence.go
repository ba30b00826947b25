// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Losing is like [Cluster.Lose] for all pods of the lost nodes, and also returns the cluster after
// the loss. The lost nodes are then gone, the placed pods are on their new nodes, and all other
// pods that need a node are pending. It must not be called for a Cluster with pods from
// [Cluster.Add].
func (c *Cluster) Losing(names []string) (Loss, *Cluster) {
	moved := map[*corev1.Pod]*node{}
	var loss Loss
	c.recording(moved, func() { loss = c.Lose(names, nil) })
	return loss, c.after(sets.New(c.named(names)...), moved, nil)
}

// Placing places additional pods in the same way as Lose places the pods of lost nodes. It returns
// the pods that fit on no node in the form of a [Loss] without nodes, and the cluster with the
// added pods. It must not be called for a Cluster with pods from [Cluster.Add].
func (c *Cluster) Placing(added []*corev1.Pod) (Loss, *Cluster) {
	l := Loss{Nodes: []string{}, Pods: len(added), WithoutPlace: []WithoutPlace{}}
	homeless := make([]pod, len(added))
	for i, object := range added {
		homeless[i] = pod{object: object, class: c.classes.of(object, nil)}
		l.AtMost = appendNew(l.AtMost, c.classes.unevaluatedOf(homeless[i].class, object, true))
	}
	slices.SortStableFunc(homeless, func(a, b pod) int { return cmp.Compare(b.class.size, a.class.size) })
	l.AtMost = appendNew(l.AtMost, c.classes.storage.uncertain(homeless, nil))
	moved := map[*corev1.Pod]*node{}
	c.recording(moved, func() {
		between := newAdmission(c.classes, homeless, nil)
		defer between.undo()
		l.addWithoutPlace(c.axes, c.placement.place(homeless, nil, between))
	})
	return l, c.after(nil, moved, added)
}

// recording calls `ask`, which places pods, and adds each placed pod and its new node to `moved`.
func (c *Cluster) recording(moved map[*corev1.Pod]*node, ask func()) {
	before := c.placement.placed
	defer func() { c.placement.placed = before }()
	c.placement.placed = func(p pod, n *node, _ vector) { moved[p.object] = n }
	ask()
}

// after returns the cluster without the nodes in `gone`, with the pods in `added`, and with each
// pod on its new node in `moved`. A pod without an entry in `moved` is pending if it was added or
// its node is gone.
func (c *Cluster) after(gone sets.Set[*node], moved map[*corev1.Pod]*node, added []*corev1.Pod) *Cluster {
	var list []*corev1.Node
	running := slices.Clone(c.pending)
	for _, object := range added {
		running = append(running, bound(object, moved[object]))
	}
	for _, n := range c.nodes {
		if !gone.Has(n) {
			list = append(list, n.object)
		}
		for _, p := range n.pods {
			switch {
			case !gone.Has(n):
				running = append(running, p.object)
			case p.onLoss == needsNode:
				running = append(running, bound(p.object, moved[p.object]))
			}
		}
	}
	return New(list, running).WithVolumes(c.classes.storage.objects()).WithDevices(c.classes.devices.objects())
}

// bound returns a copy of the pod that is bound to a node, or to none if the node is nil.
func bound(object *corev1.Pod, on *node) *corev1.Pod {
	copied := *object
	copied.Spec.NodeName = ""
	if on != nil {
		copied.Spec.NodeName = on.object.Name
	}
	return &copied
}

// IsConstrained reports whether there are constraints between the pod and other pods, including
// claims that only one pod can use.
func (c *Cluster) IsConstrained(pod *corev1.Pod) bool {
	return c.classes.relations.rulesOf(pod) != nil || c.classes.storage.demandOf(pod, false).single() != ""
}
