// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Fit describes how many copies of a pod a group of nodes can take now.
type Fit struct {
	// Copies is the number of copies that fit, if nothing else is scheduled in the meantime.
	Copies int64 `json:"copies"`
	// AtMost lists the constraints that were not evaluated, because of which fewer copies may fit.
	AtMost []string `json:"atMost,omitempty"`
	// Nodes is the number of nodes that can take copies.
	Nodes int `json:"nodes"`
	// LimitedBy counts these nodes by the resource that limits their number of copies.
	LimitedBy []Count `json:"limitedBy"`
	// Refused counts the other nodes by the reason for which they take no copy: taints, labels, or an
	// insufficient resource, as in "not enough cpu". If a node would take no copy even without its pods, its
	// reasons are combined into one text.
	Refused []Count `json:"refused"`
	// OnEmptyNode is the largest number of copies that any node of the group could take with only pods of
	// DaemonSets on it. 0 means that no node of the group will ever take a copy.
	OnEmptyNode int64 `json:"onEmptyNode"`
}

// Count is the number of nodes with a property.
type Count struct {
	What  string `json:"what"`
	Nodes int    `json:"nodes"`
	// TooSmall is set for nodes that are smaller than the pod, and may be excluded for more reasons.
	TooSmall bool `json:"-"`
}

// Fit returns the number of copies of the pod that fit on the nodes.
func (m *Members) Fit(pod *corev1.Pod) Fit {
	class := m.classes.create(pod, resources.Requests(pod))
	f := Fit{AtMost: m.classes.unevaluated(class)}
	limits, refusals := map[Count]int{}, map[Count]int{}
	for _, n := range m.nodes {
		most, lacking := m.axes.copies(n.empty(), class.request)
		reasons := class.refusals(n.object)
		tooSmall := class.unknown == "" && most == 0
		switch {
		case class.unknown != "":
			reasons = append(reasons, "no node has "+string(class.unknown))
		case tooSmall:
			reasons = append(reasons, "larger than the node: "+lacking)
		}
		if len(reasons) > 0 {
			refusals[Count{What: strings.Join(reasons, " and "), TooSmall: tooSmall}]++
			continue
		}
		f.OnEmptyNode = max(f.OnEmptyNode, most)

		copies, limit := m.axes.copies(n.free, class.request)
		if copies == 0 {
			refusals[Count{What: "not enough " + limit}]++
			continue
		}
		f.Nodes++
		f.Copies += copies
		limits[Count{What: limit}]++
	}
	f.LimitedBy, f.Refused = counts(limits), counts(refusals)
	return f
}

// RequestsOf returns the requests of a pod, as the scheduler counts them.
func RequestsOf(pod *corev1.Pod) corev1.ResourceList {
	var sums resources.Sums
	sums.Add(resources.Requests(pod))
	return sums.List()
}

// counts returns properties with their numbers of nodes, in descending order.
func counts(of map[Count]int) []Count {
	list := []Count{}
	for c, nodes := range of {
		c.Nodes = nodes
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.What, b.What)) })
	return list
}
