// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/nodes"
	"tidekeeper.dev/tidekeeper/internal/pods"
)

// Cluster is the nodes of a cluster with the pods on them. It is not safe for concurrent use.
type Cluster struct {
	// names are the resources that any node offers: CPU, memory, and the others by name. A
	// vector has one number for each, counted as in [resources.Amount].
	names []corev1.ResourceName
	index map[corev1.ResourceName]int

	nodes  []*node // by name
	byName map[string]*node
	// total is what all nodes have together.
	total vector

	// classes of pods that are alike, and those of the examples that pods were added by.
	classes   map[classKey]*class
	byExample map[*corev1.Pod]*class

	// repels are the pods that those on the nodes keep away from themselves.
	repels repels

	pending []*corev1.Pod

	// placed is called with each pod that is placed, for tests.
	placed func(pod, *node)
}

// vector is an amount of each of a cluster's resources.
type vector []int64

// node is a node with what is free on it.
type node struct {
	object            *corev1.Node
	number            int
	allocatable, free vector
	// daemonSets is what the pods of DaemonSets request.
	daemonSets vector
	pods       []pod
	// away reports whether the node is not ready, or is being deleted.
	away bool
	// room is what is free while pods are placed, nil if none was placed here.
	room vector
}

// pod is a pod that takes part of a node.
type pod struct {
	object *corev1.Pod
	class  *class
	node   *node
}

// classKey says which pods are alike: those of one controller with the same requests and
// constraints, which differ during a rollout. A pod without a controller is like no other.
type classKey struct {
	owner                 types.UID
	requests, constraints string
}

// class is pods that are alike to the scheduler.
type class struct {
	Shape
	key classKey
	// example is one of the pods.
	example *corev1.Pod
	// compared reports whether Unevaluated has what follows from the pods that run.
	compared bool
	request  vector
	// size is how much of the cluster the request is: the greatest share of any resource.
	size float64
	// unknown is a resource that is requested and that no node offers.
	unknown corev1.ResourceName
	// open are the numbers of nodes that have room for one pod of the class, as the cluster
	// is: all of those among the first scanned nodes.
	open    []int
	scanned int
}

// Keys remember which pods are alike, by the objects, which must not change: most of the work for a
// cluster is to find that out. The zero value knows none.
type Keys struct{ of map[*corev1.Pod]classKey }

// New returns a cluster. Pods that have ended are left out; those without a node are pending.
func New(list []*corev1.Node, running []*corev1.Pod) *Cluster {
	return NewWith(&Keys{}, list, running)
}

// NewWith is [New] for a caller that asks about a cluster again and again, of which few pods have changed
// meanwhile.
func NewWith(keys *Keys, list []*corev1.Node, running []*corev1.Pod) *Cluster {
	before := keys.of
	keys.of = make(map[*corev1.Pod]classKey, len(running))
	c := &Cluster{
		index: map[corev1.ResourceName]int{}, byName: map[string]*node{},
		classes: map[classKey]*class{}, byExample: map[*corev1.Pod]*class{}, repels: repels{},
	}
	c.addNodes(list)
	for _, object := range running {
		n, known := c.byName[object.Spec.NodeName]
		switch {
		case pods.IsTerminal(object):
		case object.Spec.NodeName == "":
			c.pending = append(c.pending, object)
		case known:
			class := c.classOf(object, before)
			keys.of[object] = class.key
			n.add(pod{object, class, n})
		}
	}
	return c
}

// Add adds pods that are like the example to a node, if it exists. Pods that were added by the
// same example are alike to the scheduler.
func (c *Cluster) Add(node string, example *corev1.Pod, requests []resources.Amount, count int) {
	n, known := c.byName[node]
	if !known {
		return
	}
	class := c.byExample[example]
	if class == nil {
		class = c.newClass(example, requests)
		c.byExample[example] = class
	}
	for range count {
		n.add(pod{example, class, n})
	}
}

// addNodes adds the nodes, and with them the resources that there are.
func (c *Cluster) addNodes(list []*corev1.Node) {
	offered := make([][]resources.Amount, len(list))
	for i, object := range list {
		_, offered[i] = resources.Offered(object)
		for _, a := range offered[i] {
			c.names = append(c.names, a.Resource)
		}
	}
	slices.SortFunc(c.names, resources.CompareNames)
	c.names = slices.Compact(c.names)
	for i, name := range c.names {
		c.index[name] = i
	}
	c.total = c.zero()
	for i, object := range list {
		n := &node{object: object, away: !object.DeletionTimestamp.IsZero() || !nodes.IsReady(object), daemonSets: c.zero()}
		n.allocatable, _ = c.vectorOf(offered[i])
		n.free = slices.Clone(n.allocatable)
		c.total.add(n.allocatable)
		c.nodes = append(c.nodes, n)
		c.byName[object.Name] = n
	}
	slices.SortFunc(c.nodes, func(a, b *node) int { return strings.Compare(a.object.Name, b.object.Name) })
	for i, n := range c.nodes {
		n.number = i
	}
}

// add adds a pod to the node.
func (n *node) add(p pod) {
	n.pods = append(n.pods, p)
	n.free.subtract(p.class.request)
	if ofDaemonSet(p.object) {
		n.daemonSets.add(p.class.request)
	}
}

// empty returns what is free on the node with pods of DaemonSets only.
func (n *node) empty() vector {
	left := slices.Clone(n.allocatable)
	left.subtract(n.daemonSets)
	return left
}

// zero returns a vector of zeros.
func (c *Cluster) zero() vector { return make(vector, len(c.names)) }

// vectorOf returns the amounts as a vector, and the first of those that no node offers.
func (c *Cluster) vectorOf(amounts []resources.Amount) (v vector, unknown corev1.ResourceName) {
	v = c.zero()
	for _, a := range amounts {
		i, known := c.index[a.Resource]
		switch {
		case known:
			v[i] = a.Value
		case a.Value > 0 && unknown == "":
			unknown = a.Resource
		}
	}
	return v, unknown
}

// keyOf says which pods a pod with those requests is like.
func keyOf(object *corev1.Pod, requests []resources.Amount) classKey {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return classKey{}
	}
	key := classKey{owner: owner.UID, requests: fmt.Sprint(requests)}
	if !ofDaemonSet(object) { // Each of its pods is bound to a node of its own.
		key.constraints = constraintsOf(&object.Spec)
	}
	return key
}

// classOf returns the class of a pod, of which the key may be known. No class has the zero key.
func (c *Cluster) classOf(object *corev1.Pod, keys map[*corev1.Pod]classKey) *class {
	if known := c.classes[keys[object]]; known != nil {
		return known
	}
	requests := resources.Requests(object)
	key := keyOf(object, requests)
	if known := c.classes[key]; known != nil {
		return known
	}
	created := c.newClass(object, requests)
	created.key = key
	c.repels.add(object)
	if key != (classKey{}) {
		c.classes[key] = created
	}
	return created
}

func (c *Cluster) newClass(example *corev1.Pod, requests []resources.Amount) *class {
	created := &class{Shape: ShapeOf(example), example: example}
	created.request, created.unknown = c.vectorOf(requests)
	for i, r := range created.request {
		if c.total[i] > 0 {
			created.size = max(created.size, float64(r)/float64(c.total[i]))
		}
	}
	return created
}

// openNode returns the k-th node that has room for one pod of the class as the cluster is. It
// looks no further than it has to: most pods fit one of the first nodes.
func (c *Cluster) openNode(of *class, k int) (n *node, found bool) {
	for len(of.open) <= k {
		if of.scanned == len(c.nodes) || of.unknown != "" {
			return nil, false
		}
		n := c.nodes[of.scanned]
		of.scanned++
		// Resources first: that is cheaper.
		if !n.away && n.free.covers(of.request) && len(of.refusals(n.object)) == 0 {
			of.open = append(of.open, n.number)
		}
	}
	return c.nodes[of.open[k]], true
}

// list returns a vector as a resource list with these resources.
func (c *Cluster) list(v vector, names []corev1.ResourceName) corev1.ResourceList {
	sums := resources.Sums{}
	for _, name := range names {
		if i, known := c.index[name]; known {
			sums[name] = resources.Sum{Value: max(0, v[i]), Count: 1}
		}
	}
	return sums.List()
}

// members returns the nodes of these names that exist, by name.
func (c *Cluster) members(names []string) []*node {
	list := make([]*node, 0, len(names))
	for _, name := range names {
		if n, known := c.byName[name]; known {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.number, b.number) })
	return slices.Compact(list)
}

// offered returns the resources that any of the nodes offers, in the order of the names.
func (c *Cluster) offered(members []*node) []corev1.ResourceName {
	var names []corev1.ResourceName
	for i, name := range c.names {
		if slices.ContainsFunc(members, func(n *node) bool { return n.allocatable[i] > 0 }) {
			names = append(names, name)
		}
	}
	return names
}

// requested returns the resources of which there is something, in the order of the names.
func (c *Cluster) requested(v vector) (names []corev1.ResourceName) {
	for i, name := range c.names {
		if v[i] > 0 {
			names = append(names, name)
		}
	}
	return names
}

func (v vector) add(other vector) {
	for i := range v {
		v[i] += other[i]
	}
}

func (v vector) subtract(other vector) {
	for i := range v {
		v[i] -= other[i]
	}
}

// covers reports whether there is enough of everything that is requested. What is not
// requested cannot be lacking, even if more is taken than there is.
func (v vector) covers(request vector) bool {
	for i, r := range request {
		if r > 0 && r > v[i] {
			return false
		}
	}
	return true
}
