// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/pods"
)

// Loss is what would become of the pods on nodes that are lost.
type Loss struct {
	// Nodes are lost.
	Nodes []string `json:"nodes"`
	// Pods is how many pods need another place: those whose controller would replace them.
	// Pods of DaemonSets are not among them, and go with their node.
	Pods int `json:"pods"`
	// Unmanaged is how many pods no controller would replace, static pods included.
	Unmanaged int `json:"unmanaged"`
	// WithoutPlace are the pods that no place was found for, by workload, those with most pods
	// first. If there are none, the pods fit: a placement was found. Otherwise there may be
	// one that was not.
	WithoutPlace []WithoutPlace `json:"withoutPlace"`
	// Requests is what the pods without place request together.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// AtMost names what was not evaluated of the pods: fewer may find a place.
	AtMost []string `json:"atMost,omitempty"`
}

// WithoutPlace is pods of one workload that no place was found for.
type WithoutPlace struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"` // such as Deployment/web
	Pods      int    `json:"pods"`
}

// Homeless is the number of pods that no place was found for.
func (l *Loss) Homeless() (sum int) {
	for _, w := range l.WithoutPlace {
		sum += w.Pods
	}
	return sum
}

// Lose returns what becomes of the pods on the nodes of these names if they are lost: whether
// the other nodes of the cluster have a place for each. The pods that request most are placed
// first, each on the first node by name that takes it (first-fit-decreasing). The cluster
// stays as it is. Of the pods, only those that were on the nodes of the names in of are
// reported, or all if it is nil; the others need a place, too.
func (c *Cluster) Lose(names, of []string) Loss {
	lost := c.members(names)
	reported := c.numbers(of)
	l := Loss{Nodes: []string{}, WithoutPlace: []WithoutPlace{}}
	gone := make(map[int]bool, len(lost))
	var homeless []pod
	for _, n := range lost {
		gone[n.number] = true
		l.Nodes = append(l.Nodes, n.object.Name)
		for _, p := range n.pods {
			p.reported = reported == nil || reported[n.number]
			switch {
			case ofDaemonSet(p.object) || !p.object.DeletionTimestamp.IsZero():
			case unmanaged(p.object) && p.reported:
				l.Unmanaged++
			case unmanaged(p.object):
			default:
				homeless = append(homeless, p)
				if p.reported {
					l.Pods++
				}
			}
		}
	}
	slices.SortStableFunc(homeless, func(a, b pod) int { return cmp.Compare(c.size(b.class.request), c.size(a.class.request)) })

	var used []*node
	// A class has room on fewer and fewer nodes, so it goes on where it has stopped.
	next := map[*class]int{}
	rest, short := map[WithoutPlace]int{}, make(vector, len(c.names))
	for _, p := range homeless {
		n, k := c.firstFit(p.class, next[p.class], gone)
		next[p.class] = k
		for _, what := range c.unevaluated(p.class) {
			if p.reported && !slices.Contains(l.AtMost, what) {
				l.AtMost = append(l.AtMost, what)
			}
		}
		if n == nil && !p.reported {
			continue
		}
		if n == nil {
			kind, name := pods.Workload(p.object)
			rest[WithoutPlace{Namespace: p.object.Namespace, Workload: kind + "/" + name}]++
			short.add(p.class.request)
			continue
		}
		if n.room == nil {
			n.room = slices.Clone(n.free)
			used = append(used, n)
		}
		n.room.subtract(p.class.request)
		if c.placed != nil {
			c.placed(p, n)
		}
	}
	for _, n := range used {
		n.room = nil
	}

	for w, count := range rest {
		w.Pods = count
		l.WithoutPlace = append(l.WithoutPlace, w)
	}
	slices.SortFunc(l.WithoutPlace, func(a, b WithoutPlace) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
	})
	if len(l.WithoutPlace) > 0 {
		l.Requests = c.list(short, c.offered(c.nodes))
	}
	return l
}

// numbers returns the numbers of the nodes of these names; nil if names is nil.
func (c *Cluster) numbers(names []string) map[int]bool {
	if names == nil {
		return nil
	}
	numbers := map[int]bool{}
	for _, n := range c.members(names) {
		numbers[n.number] = true
	}
	return numbers
}

// firstFit returns the first node, from the k-th that was open to the class, that takes a pod
// of it and is not gone, and where to go on; nil if there is none.
func (c *Cluster) firstFit(of *class, k int, gone map[int]bool) (*node, int) {
	for ; ; k++ {
		n, found := c.openNode(of, k)
		if !found {
			return nil, k
		}
		if gone[n.number] {
			continue
		}
		if n.room == nil {
			return n, k
		}
		if !n.room.lacks(of.request) {
			return n, k
		}
	}
}

// size is how much of the cluster a request is: the greatest share of any of its resources.
func (c *Cluster) size(request vector) (share float64) {
	for i, r := range request {
		if total := c.total()[i]; total > 0 {
			share = max(share, float64(r)/float64(total))
		}
	}
	return share
}

// total returns what all nodes have together.
func (c *Cluster) total() vector {
	if c.sum == nil {
		c.sum = make(vector, len(c.names))
		for _, n := range c.nodes {
			c.sum.add(n.allocatable)
		}
	}
	return c.sum
}

// unmanaged reports whether no controller would replace the pod elsewhere.
func unmanaged(p *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(p)
	return owner == nil || owner.Kind == "Node"
}
