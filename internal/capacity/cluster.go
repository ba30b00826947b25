// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Cluster models the nodes of a cluster and the pods on them. It is not safe for concurrent use.
type Cluster struct {
	axes      *axes
	nodes     []*node // sorted by name
	byName    map[string]*node
	classes   *classes
	placement *placement
	pending   []*corev1.Pod
}

// node is a node of the cluster, together with its pods and its free resources.
type node struct {
	object            *corev1.Node
	number            int
	allocatable, free vector
	// daemonSets is the sum of the requests of the node's DaemonSet pods.
	daemonSets vector
	pods       []pod
	// away is true if the node is not ready or is being deleted.
	away bool
}

// pod is a pod on a node of the cluster.
type pod struct {
	object *corev1.Pod
	class  *class
	// node is the pod's node; nil if it has none. index is the position of the pod among the pods that
	// were added to the node.
	node  *node
	index int32
	// onLoss says what happens to the pod if its node is lost. It is read for each pod of a lost
	// node, and would cost most of the time if it were taken from the object each time.
	onLoss onLoss
}

// onLoss is what happens to a pod if its node is lost.
type onLoss int8

const (
	// isGone is the value for a pod that no controller would replace.
	isGone onLoss = iota
	// endsWithNode is the value for a pod that terminates with its node and needs no other node: a
	// pod of a DaemonSet, or a pod that is being deleted.
	endsWithNode
	// needsNode is the value for a pod whose controller would replace it, on another node.
	needsNode
)

// onLossOf returns what happens to a pod of the given class if its node is lost.
func onLossOf(object *corev1.Pod, of *class) onLoss {
	switch {
	case of.ofDaemonSet || !object.DeletionTimestamp.IsZero():
		return endsWithNode
	case pods.IsReplaced(object):
		return needsNode
	}
	return isGone
}

// New returns a Cluster with the given nodes and pods. Terminated pods are left out. Pods without a
// node count as pending.
func New(list []*corev1.Node, running []*corev1.Pod) *Cluster {
	c, _ := NewWith(context.Background(), &Keys{}, list, running) // It is never cancelled.
	return c
}

// NewWith is like [New], but reuses the class keys cached in `keys`. It is meant for callers that
// repeatedly build Clusters between which few pods change. If ctx is done before the Cluster is
// complete, NewWith returns an error.
func NewWith(ctx context.Context, keys *Keys, list []*corev1.Node, running []*corev1.Pod) (*Cluster, error) {
	of := make(map[*corev1.Pod]*classKey, len(running))
	c := newNodes(list)
	for i, object := range running {
		if i%podsPerCheck == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		n, known := c.byName[object.Spec.NodeName]
		switch {
		case pods.IsTerminal(object):
		case object.Spec.NodeName == "":
			c.pending = append(c.pending, object)
		case known:
			class := c.classes.of(object, keys.of)
			of[object] = class.key
			n.add(object, class)
		}
	}
	keys.of = of
	return c, nil
}

// podsPerCheck is the number of pods that [NewWith] adds between two checks of its context.
const podsPerCheck = 500

// newNodes returns a Cluster without pods.
func newNodes(list []*corev1.Node) *Cluster {
	offered := make([][]resources.Amount, len(list))
	for i, object := range list {
		_, offered[i] = resources.Offered(object)
	}
	c := &Cluster{axes: newAxes(offered), byName: map[string]*node{}}
	total := c.axes.zero()
	for i, object := range list {
		n := newNode(object, c.axes, offered[i])
		total.add(n.allocatable)
		c.nodes = append(c.nodes, n)
		c.byName[object.Name] = n
	}
	slices.SortFunc(c.nodes, func(a, b *node) int { return strings.Compare(a.object.Name, b.object.Name) })
	for i, n := range c.nodes {
		n.number = i
	}
	c.classes, c.placement = newClasses(c.axes, total, c.nodes), newPlacement(c.nodes)
	return c
}

// Add adds `count` copies of the example pod to a node. It does nothing if the node does not exist.
// Pods added with the same example share a class. It must not be called after a method that
// computes free resources or places pods, because such methods cache results.
func (c *Cluster) Add(node string, example *corev1.Pod, requests []resources.Amount, count int) {
	n, known := c.byName[node]
	if !known {
		return
	}
	class := c.classes.like(example, requests)
	for range count {
		n.add(example, class)
	}
}

// WithVolumes makes the cluster evaluate the constraints on volumes, and returns the cluster.
// Without volumes, they are not evaluated, and are named as such.
func (c *Cluster) WithVolumes(v *Volumes) *Cluster {
	if v != nil {
		c.classes.storage = newStorage(v, c.nodes)
	}
	return c
}

// WithDevices makes the cluster evaluate the constraints on devices, and returns the cluster.
// Without devices, they are not evaluated, and are named as such.
func (c *Cluster) WithDevices(d *Devices) *Cluster {
	if d != nil {
		c.classes.devices = newInventory(d)
	}
	return c
}

// Members returns the named nodes as a group. Unknown names and duplicates are ignored.
func (c *Cluster) Members(names []string) *Members {
	return &Members{axes: c.axes, classes: c.classes, nodes: c.named(names)}
}

// Pending returns the pods without a node, in groups of pods that the scheduler treats alike. The
// groups are sorted by descending number of pods, then by the namespace and name of their first
// pod.
func (c *Cluster) Pending() []Group {
	return groupsOf(c.pending, func(pod *corev1.Pod) string {
		key := c.classes.keyOf(pod)
		if c.classes.relations.rulesOf(pod) != nil {
			key += labels.Set(pod.Labels).String()
		}
		return key
	})
}

// Zones maps each zone to the names of its nodes. Nodes without the label
// topology.kubernetes.io/zone are left out.
func (c *Cluster) Zones() map[string][]string {
	zones := map[string][]string{}
	for _, n := range c.nodes {
		if zone := n.zone(); zone != "" {
			zones[zone] = append(zones[zone], n.object.Name)
		}
	}
	return zones
}

// named returns the named nodes, sorted by name. Unknown names and duplicates are ignored.
func (c *Cluster) named(names []string) []*node {
	list := make([]*node, 0, len(names))
	for _, name := range names {
		if n, known := c.byName[name]; known {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.number, b.number) })
	return slices.Compact(list)
}

func newNode(object *corev1.Node, a *axes, offered []resources.Amount) *node {
	n := &node{object: object, away: !object.DeletionTimestamp.IsZero() || !nodes.IsReady(object), daemonSets: a.zero()}
	n.allocatable, _ = a.vectorOf(offered)
	n.free = slices.Clone(n.allocatable)
	return n
}

// add adds a pod to the node and subtracts its requests from the free resources.
func (n *node) add(object *corev1.Pod, of *class) {
	n.pods = append(n.pods, pod{object: object, class: of, node: n, index: int32(len(n.pods)), onLoss: onLossOf(object, of)})
	n.free.subtract(of.request)
	if of.ofDaemonSet {
		n.daemonSets.add(of.request)
	}
}

// empty returns the resources that would be free if the node ran only its DaemonSet pods.
func (n *node) empty() vector {
	left := slices.Clone(n.allocatable)
	left.subtract(n.daemonSets)
	return left
}

// requested returns the sum of the requests of the node's pods.
func (n *node) requested() vector {
	v := slices.Clone(n.allocatable)
	v.subtract(n.free)
	return v
}

// zone returns the zone of the node, or "" if it has none.
func (n *node) zone() string { return n.object.Labels[corev1.LabelTopologyZone] }
