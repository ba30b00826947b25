// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Share is a namespace's or workload's share of all requests for a resource on a group of nodes.
type Share struct {
	// Name is a namespace, or namespace/kind/name of a workload. It is empty for the combined share
	// of all remaining namespaces or workloads.
	Name    string  `json:"name"`
	Pods    int     `json:"pods"`
	Percent float64 `json:"percent"`
}

// Shares divides the requests for a resource on the nodes by namespace, or by workload if
// `workloads` is set. It returns the largest `limit` shares in descending order, followed by the
// combined share of all others, so that the percentages add up to 100. A single remaining share is
// returned by name. It returns nil if nothing is requested.
func (m *Members) Shares(resource corev1.ResourceName, workloads bool, limit int) []Share {
	i, known := m.axes.index[resource]
	if !known {
		return nil
	}
	type sum struct {
		pods    int
		request int64
	}
	// Pods of a class have the same namespace and workload, whose names take longer than a count.
	ofClass, total := map[*class]int{}, int64(0)
	for _, n := range m.nodes {
		for _, p := range n.pods {
			ofClass[p.class]++
			total += p.class.request[i]
		}
	}
	sums := map[string]sum{}
	for of, count := range ofClass {
		name := of.example.Namespace
		if workloads {
			name += "/" + pods.WorkloadName(of.example)
		}
		s := sums[name]
		s.pods += count
		s.request += int64(count) * of.request[i]
		sums[name] = s
	}
	if total == 0 {
		return nil
	}
	list := make([]Share, 0, len(sums))
	for name, s := range sums {
		list = append(list, Share{name, s.pods, 100 * float64(s.request) / float64(total)})
	}
	slices.SortFunc(list, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Percent, a.Percent), cmp.Compare(a.Name, b.Name)) })
	if len(list) <= limit+1 {
		return list
	}
	rest := Share{}
	for _, s := range list[limit:] {
		rest.Pods += s.Pods
		rest.Percent += s.Percent
	}
	return append(list[:limit], rest)
}
