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

// Loss describes the pods on lost nodes, and which of them do not fit on the remaining nodes.
type Loss struct {
	// Nodes lists the names of the lost nodes.
	Nodes []string `json:"nodes"`
	// Pods is the number of pods that need another node, because their controllers would replace
	// them. Pods of DaemonSets are not counted, because they terminate with their node.
	Pods int `json:"pods"`
	// Unmanaged is the number of pods that no controller would replace, including static pods.
	Unmanaged int `json:"unmanaged"`
	// WithoutPlace lists, for each workload, the number of its pods that fit on no remaining node,
	// sorted by descending number. If the list is empty, all pods were placed. Otherwise, another
	// placement may still fit all pods.
	WithoutPlace []WithoutPlace `json:"withoutPlace"`
	// Requests is the sum of the requests of the pods in WithoutPlace.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// AtMost lists the pods' constraints that were not evaluated. If it is not empty, fewer pods
	// may fit than reported.
	AtMost []string `json:"atMost,omitempty"`
}

// WithoutPlace is the number of a workload's pods that fit on no remaining node.
type WithoutPlace struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"` // such as Deployment/web
	Pods      int    `json:"pods"`
}

// Homeless returns the total number of pods that fit on no remaining node.
func (l *Loss) Homeless() (sum int) {
	for _, w := range l.WithoutPlace {
		sum += w.Pods
	}
	return sum
}

// Lose simulates the loss of the named nodes, and reports which of their pods do not fit on the
// remaining nodes. It places pods by first-fit-decreasing: the pods with the largest requests
// first, each on the first node, by name, that accepts it. The cluster is not changed. If `of` is
// not nil, only pods on the nodes named in it are reported, although pods on other lost nodes also
// take up room.
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
			case p.onLoss == needsNode:
				homeless = append(homeless, p)
			case p.onLoss == isGone && reported(p):
				l.Unmanaged++
			}
		}
	}
	slices.SortStableFunc(homeless, func(a, b pod) int { return cmp.Compare(b.class.size, a.class.size) })
	for _, p := range homeless {
		if reported(p) {
			l.Pods++
			l.AtMost = appendNew(l.AtMost, c.classes.unevaluatedOf(p.class, p.object, true))
		}
	}
	l.AtMost = appendNew(l.AtMost, c.classes.storage.uncertain(homeless, lost))
	between := newAdmission(c.classes, homeless, lost)
	defer between.undo()
	rest := c.placement.place(homeless, sets.New(lost...), between)
	l.addWithoutPlace(c.axes, slices.DeleteFunc(rest, func(p pod) bool { return !reported(p) }))
	return l
}

// addWithoutPlace sets WithoutPlace and Requests from the pods that fit on no node.
func (l *Loss) addWithoutPlace(a *axes, rest []pod) {
	counts, short := map[WithoutPlace]int{}, a.zero()
	for _, p := range rest {
		counts[WithoutPlace{Namespace: p.object.Namespace, Workload: pods.WorkloadName(p.object)}]++
		short.add(p.class.request)
	}
	for w, count := range counts {
		w.Pods = count
		l.WithoutPlace = append(l.WithoutPlace, w)
	}
	slices.SortFunc(l.WithoutPlace, func(a, b WithoutPlace) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
	})
	if len(l.WithoutPlace) > 0 {
		l.Requests = a.list(short, a.positive(short))
	}
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
