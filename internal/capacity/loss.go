// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Loss describes the pods on lost nodes, and whether the other nodes have room for them.
type Loss struct {
	// Nodes has the names of the lost nodes.
	Nodes []string `json:"nodes"`
	// Pods is the number of pods that need another place because their controllers would replace them. Pods
	// of DaemonSets do not count, as they end with their node.
	Pods int `json:"pods"`
	// Unmanaged is the number of pods that no controller would replace, including static pods.
	Unmanaged int `json:"unmanaged"`
	// WithoutPlace has the pods without a place, by workload, in descending order. If it is empty, a
	// placement for all pods was found. Otherwise, a placement may still exist.
	WithoutPlace []WithoutPlace `json:"withoutPlace"`
	// Requests is the sum of the requests of the pods without place.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// AtMost lists the constraints of the pods that were not evaluated, because of which fewer pods may find
	// a place.
	AtMost []string `json:"atMost,omitempty"`
}

// WithoutPlace is the number of pods of a workload that did not find a place.
type WithoutPlace struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"` // such as Deployment/web
	Pods      int    `json:"pods"`
}

// Homeless returns the number of pods that did not find a place.
func (l *Loss) Homeless() (sum int) {
	for _, w := range l.WithoutPlace {
		sum += w.Pods
	}
	return sum
}

// Lose simulates the loss of the named nodes, and returns whether the other nodes have room for their pods.
// The pods with the largest requests are placed first, each on the first node by name that takes it
// (first-fit-decreasing). The cluster is not changed. Only pods on the nodes in of are reported, or all pods
// if of is nil; the other pods need a place, too.
func (c *Cluster) Lose(names, of []string) Loss {
	lost := c.named(names)
	about := sets.New(lost...)
	if of != nil {
		about = sets.New(c.named(of)...)
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
			l.AtMost = appendNew(l.AtMost, c.classes.unevaluated(p.class))
		}
	}
	counts, short := map[WithoutPlace]int{}, c.axes.zero()
	for _, p := range c.placement.place(homeless, sets.New(lost...)) {
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
		l.Requests = c.axes.list(short, c.axes.positive(short))
	}
	return l
}

// appendNew appends the elements that the list does not contain yet.
func appendNew(list, elements []string) []string {
	for _, e := range elements {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}
