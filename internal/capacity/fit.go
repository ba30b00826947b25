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

// Fit is how many copies of a pod a group of nodes takes now.
type Fit struct {
	// Copies fit now, one after the other, if nothing else is scheduled meanwhile.
	Copies int64 `json:"copies"`
	// AtMost names the constraints that were not evaluated: fewer copies may fit.
	AtMost []string `json:"atMost,omitempty"`
	// Nodes is the number of nodes that take copies.
	Nodes int `json:"nodes"`
	// LimitedBy is how many of these nodes have room for no more because of each resource.
	LimitedBy []Count `json:"limitedBy"`
	// Refused is how many of the other nodes take none for each reason: taints, labels, or a
	// resource of which there is not enough, as in "not enough cpu". A node that takes none
	// whatever runs there has all of its reasons in one text.
	Refused []Count `json:"refused"`
	// OnEmptyNode is how many copies the node with most room for them would take with pods of
	// DaemonSets only. 0 means that no node of the group will ever take one.
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

// Fit returns how many copies of the pod the nodes take.
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

// RequestsOf returns what a pod requests, as the scheduler counts it.
func RequestsOf(pod *corev1.Pod) corev1.ResourceList {
	var sums resources.Sums
	sums.Add(resources.Requests(pod))
	return sums.List()
}

// counts returns the counts, the greatest first.
func counts(of map[string]int) []Count {
	list := []Count{}
	for what, nodes := range of {
		list = append(list, Count{what, nodes})
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.What, b.What)) })
	return list
}
