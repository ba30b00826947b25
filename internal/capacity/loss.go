// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

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
	about := sets.New(lost...)
	if of != nil {
		about = sets.New(c.members(of)...)
	}
	reported := func(p pod) bool { return about.Has(p.node) }
	l := Loss{Nodes: []string{}, WithoutPlace: []WithoutPlace{}}
	var homeless []pod
	for _, n := range lost {
		l.Nodes = append(l.Nodes, n.object.Name)
		for _, p := range n.pods {
			switch {
			case ofDaemonSet(p.object) || !p.object.DeletionTimestamp.IsZero():
			case pods.IsReplaced(p.object):
				homeless = append(homeless, p)
			case reported(p):
				l.Unmanaged++
			}
		}
	}
	slices.SortStableFunc(homeless, func(a, b pod) int { return cmp.Compare(b.class.size, a.class.size) })
	for _, p := range homeless {
		if reported(p) {
			l.Pods++
			l.AtMost = appendNew(l.AtMost, c.unevaluated(p.class))
		}
	}
	counts, short := map[WithoutPlace]int{}, c.zero()
	for _, p := range c.place(homeless, sets.New(lost...)) {
		if reported(p) {
			counts[WithoutPlace{Namespace: p.object.Namespace, Workload: pods.WorkloadName(p.object)}]++
			short.add(p.class.request)
		}
	}
	for w, count := range counts {
		w.Pods = count
		l.WithoutPlace = append(l.WithoutPlace, w)
	}
	slices.SortFunc(l.WithoutPlace, func(a, b WithoutPlace) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
	})
	if len(l.WithoutPlace) > 0 {
		l.Requests = c.list(short, c.requested(short))
	}
	return l
}

// appendNew appends the elements that are not in the list yet.
func appendNew(list, elements []string) []string {
	for _, e := range elements {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// place finds a place for each pod in turn, on nodes that are not gone, and returns those that
// none is found for. It takes no room for good.
func (c *Cluster) place(homeless []pod, gone sets.Set[*node]) (rest []pod) {
	var used []*node
	// A class has room on fewer and fewer nodes, so it goes on where it has stopped.
	next := map[*class]int{}
	for _, p := range homeless {
		n, k := c.firstFit(p.class, next[p.class], gone)
		next[p.class] = k
		if n == nil {
			rest = append(rest, p)
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
	return rest
}

// firstFit returns the first node, from the k-th that was open to the class, that takes a pod
// of it and is not gone, and where to go on; nil if there is none.
func (c *Cluster) firstFit(of *class, k int, gone sets.Set[*node]) (*node, int) {
	for ; ; k++ {
		n, found := c.openNode(of, k)
		if !found {
			return nil, k
		}
		if !gone.Has(n) && (n.room == nil || n.room.covers(of.request)) {
			return n, k
		}
	}
}
