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
}

// tooSmall begins what is said of a node that is smaller than a pod.
const tooSmall = "larger than the node: "

// TooSmall reports whether the nodes are too small, and may be excluded by more than that.
func (c Count) TooSmall() bool { return strings.Contains(c.What, tooSmall) }

// Fit returns the number of copies of the pod that fit on the nodes.
func (m *Members) Fit(pod *corev1.Pod) Fit {
	class := m.classes.create(pod, resources.Requests(pod))
	f := Fit{AtMost: m.classes.unevaluated(class)}
	limits, refusals := map[string]int{}, map[string]int{}
	for _, n := range m.nodes {
		most, lacking := m.axes.copies(n.empty(), class.request)
		reasons := class.refusals(n.object)
		switch {
		case class.unknown != "":
			reasons = append(reasons, "no node has "+string(class.unknown))
		case most == 0:
			reasons = append(reasons, tooSmall+lacking)
		}
		if len(reasons) > 0 {
			refusals[strings.Join(reasons, " and ")]++
			continue
		}
		f.OnEmptyNode = max(f.OnEmptyNode, most)

		copies, limit := m.axes.copies(n.free, class.request)
		if copies == 0 {
			refusals["not enough "+limit]++
			continue
		}
		f.Nodes++
		f.Copies += copies
		limits[limit]++
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

// counts returns the counts in descending order.
func counts(of map[string]int) []Count {
	list := []Count{}
	for what, nodes := range of {
		list = append(list, Count{what, nodes})
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.What, b.What)) })
	return list
}
