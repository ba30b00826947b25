// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Fit describes how many copies of a pod the nodes of a group can currently accept.
type Fit struct {
	// Copies is the number of copies that fit, provided that no other pods are scheduled in the
	// meantime.
	Copies int64 `json:"copies"`
	// AtMost lists the pod's constraints that were not evaluated. If it is not empty, Copies is an
	// upper bound.
	AtMost []string `json:"atMost,omitempty"`
	// Nodes is the number of nodes that can accept copies.
	Nodes int `json:"nodes"`
	// LimitedBy lists each resource or constraint that limits the number of copies on some of these
	// nodes, with the number of nodes that it limits.
	LimitedBy []Count `json:"limitedBy"`
	// Refused lists each reason why nodes cannot accept a copy, such as a taint, a label, or "not
	// enough cpu", with the number of these nodes. If a node could not accept a copy even without
	// its other pods, all its reasons are combined into a single string.
	Refused []Count `json:"refused"`
	// OnEmptyNode is the maximum number of copies that any node of the group could accept if only
	// DaemonSet pods ran on it. If it is 0, freeing resources does not help: the pod would have to
	// change, or a node's labels, taints, cordon or size.
	OnEmptyNode int64 `json:"onEmptyNode"`
}

// Count is a reason or a limit, described in What, with the number of nodes to which it applies.
type Count struct {
	What  string `json:"what"`
	Nodes int    `json:"nodes"`
	// TooSmall is set if the nodes are smaller than the pod. The field What may then contain
	// additional reasons.
	TooSmall bool `json:"-"`
}

// Fit computes the number of copies of the pod that fit on the nodes, and the limiting resources.
func (m *Members) Fit(pod *corev1.Pod) Fit {
	requests, provided := m.classes.devices.requestsOf(pod)
	class := m.classes.create(pod, requests)
	rules := m.classes.rulesOf(class)
	needs := m.classes.needsOf(pod)
	f := Fit{AtMost: appendNew(m.classes.unevaluatedOf(class, pod, false), provided)}
	refusals, free := map[Count]int{}, nodeFits{}
	begins := false // whether a node admits the first copy, if it is empty
	for _, n := range m.nodes {
		most, lacking := m.axes.copies(n.empty(), class.request)
		most, lacking = needs.limit(n, true, most, lacking)
		copies, limit := m.axes.copies(n.free, class.request)
		copies, limit = needs.limit(n, false, copies, limit)
		reasons := append(class.refusals(n.object), needs.refusals(n.object)...)
		// A node with more volumes than its attach limit takes pods that bring no other ones.
		tooSmall := class.unknown == "" && most == 0 && copies == 0
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
		single := cmp.Or(rules.single(n), needs.single())
		if single != "" {
			most = min(most, 1)
		}
		f.OnEmptyNode = max(f.OnEmptyNode, most)
		begins = begins || needs.admitsFirst(n)

		if copies == 0 {
			refusals[Count{What: "not enough " + limit}]++
			continue
		}
		if why := cmp.Or(m.classes.relations.refusal(rules, n), needs.conflict()); why != "" {
			refusals[Count{What: why}]++
			continue
		}
		if single != "" && copies > 1 {
			copies, limit = 1, single
		}
		free = append(free, nodeFit{n, copies, limit})
		f.AtMost = appendNew(f.AtMost, needs.uncertain(n))
	}
	if !begins {
		f.OnEmptyNode = 0
	}
	free = needs.first(free, refusals)
	f.share(free, rules.shared(), refusals)
	needs.complete(&f, free)
	if f.Copies > 0 && slices.ContainsFunc(m.classes.relations.nodes, func(n *node) bool { return needs.devices.failsOn(n) && len(class.refusals(n.object)) == 0 }) {
		f.AtMost = appendNew(f.AtMost, []string{failingSelectors})
	}
	if rules != nil && rules.startsGroup() && m.takenElsewhere(class, rules) {
		f.AtMost = appendNew(f.AtMost, []string{podAffinity})
	}
	f.Refused = counts(refusals)
	return f
}

// share completes f under limits that apply to several nodes together, such as topology spread
// constraints. free lists the nodes that can accept copies without these limits. Nodes that accept
// no copy under the limits are added to refusals.
func (f *Fit) share(free nodeFits, limits []sharedLimit, refusals map[Count]int) {
	by := map[Count]int{}
	defer func() { f.LimitedBy = counts(by) }()
	if len(limits) == 0 {
		for _, fit := range free {
			f.Copies += fit.copies
			by[Count{What: fit.limit}]++
		}
		f.Nodes = len(free)
		return
	}
	together, uncertain := free.applyAll(limits)
	f.Copies, f.AtMost = together.total, appendNew(f.AtMost, uncertain)
	for _, fit := range free {
		switch copies, fewer := together.of(fit.node); {
		case copies == 0:
			refusals[Count{What: together.name}]++
			continue
		case fewer:
			by[Count{What: together.name}]++
		default:
			by[Count{What: fit.limit}]++
		}
		f.Nodes++
	}
}

// takenElsewhere reports whether a node outside the group accepts a pod of the class. If the pod is
// the first of several pods with affinity to each other, all of them may then be placed outside the
// group.
func (m *Members) takenElsewhere(of *class, rules *rules) bool {
	mine := sets.New(m.nodes...)
	return slices.ContainsFunc(m.classes.relations.nodes, func(n *node) bool {
		return !mine.Has(n) && !n.away && n.free.covers(of.request) && len(of.refusals(n.object)) == 0 && m.classes.relations.refusal(rules, n) == ""
	})
}

// RequestsOf returns the effective requests of a pod, computed as in the scheduler.
func RequestsOf(pod *corev1.Pod) corev1.ResourceList {
	var sums resources.Sums
	sums.Add(resources.Requests(pod))
	return sums.List()
}

// counts converts the numbers of nodes in the map to a list, sorted in descending order.
func counts(of map[Count]int) []Count {
	list := []Count{}
	for c, nodes := range of {
		c.Nodes = nodes
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.What, b.What)) })
	return list
}
