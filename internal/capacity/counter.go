// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// counter counts the pods that a term or a topology spread constraint selects, by topology domain.
// A domain is a value of the node label `key`.
type counter struct {
	key string
	// selects reports whether a pod is counted.
	selects func(p pod) bool
	// on reports whether a node counts as part of its domain. If on is nil, every node with the
	// label `key` counts.
	on    func(n *corev1.Node) bool
	pods  map[string]int
	total int
	// domains contains the domains with at least one node; nil unless the counter belongs to a
	// topology spread constraint.
	domains *domains
}

// domains tracks the smallest number of pods in any domain of a topology spread constraint.
type domains struct {
	// nodes maps each domain to its number of nodes.
	nodes map[string]int
	// byPods maps each number of pods to the number of domains with that many pods.
	byPods map[int]int
}

// domain returns the domain of a node. It returns false if the node belongs to no domain.
func (c *counter) domain(n *node) (string, bool) {
	domain, has := n.object.Labels[c.key]
	return domain, has && (c.on == nil || c.on(n.object))
}

// at returns the number of pods that the counter selects in the node's domain.
func (c *counter) at(n *node) int { return c.pods[n.object.Labels[c.key]] }

// add adds `by` to the count of the node's domain if the counter selects the pod.
func (c *counter) add(p pod, n *node, by int) {
	domain, is := c.domain(n)
	if !is || !c.selects(p) {
		return
	}
	before := c.pods[domain]
	c.pods[domain] = before + by
	c.total += by
	if c.domains != nil && c.domains.nodes[domain] > 0 {
		c.domains.raise(before, -1)
		c.domains.raise(before+by, 1)
	}
}

// addNode adds `by` to the number of nodes in the node's domain. Domains without nodes are ignored
// when the smallest number of pods is determined.
func (c *counter) addNode(n *node, by int) {
	domain, is := c.domain(n)
	if !is || c.domains == nil {
		return
	}
	before := c.domains.nodes[domain]
	c.domains.nodes[domain] = before + by
	switch {
	case before == 0:
		c.domains.raise(c.pods[domain], 1)
	case before+by == 0:
		c.domains.raise(c.pods[domain], -1)
	}
}

// raise adds `by` to the number of domains with the given number of pods.
func (d *domains) raise(pods, by int) {
	if d.byPods[pods] += by; d.byPods[pods] == 0 {
		delete(d.byPods, pods)
	}
}

// least returns the smallest number of pods in any domain. As in the scheduler, it returns 0 if
// there are fewer domains than `wanted`, the minDomains of the constraint.
func (d *domains) least(wanted int) int {
	count, least := 0, math.MaxInt32
	for pods, domains := range d.byPods {
		count += domains
		least = min(least, pods)
	}
	if count < wanted {
		return 0
	}
	return least
}
