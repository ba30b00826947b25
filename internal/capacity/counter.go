// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import "math"

// counter counts the pods that a term or a topology spread constraint selects, by topology domain.
// A domain is a value of the node label `key`.
type counter struct {
	key string
	// selects reports whether a pod is counted.
	selects  func(p pod) bool
	topology *topology
	// on tells for each node, indexed by node.number, whether it counts as part of its domain. If on
	// is nil, every node with the label `key` counts.
	on []bool
	// pods has the number of pods in each domain.
	pods  tally
	total int
	// attracts is true if the counter belongs to a pod affinity term, whose rule reads total.
	attracts bool
	// local is true if the pods of a node matter to this node only: the counter belongs to an
	// anti-affinity term, and each node is a separate domain.
	local bool
	// domains contains the domains with at least one node; nil unless the counter belongs to a
	// topology spread constraint.
	domains *domains
}

// domains tracks the smallest number of pods in any domain of a topology spread constraint.
type domains struct {
	// nodes has the number of nodes in each domain.
	nodes tally
	// byPods maps each number of pods to the number of domains with that many pods. It is nil if
	// there are few domains, which are then compared instead.
	byPods map[int]int
}

// has reports whether a node has the label `key`.
func (c *counter) has(n *node) bool { return c.topology.of[n.number] >= 0 }

// domain returns the domain of a node. It returns false if the node belongs to no domain.
func (c *counter) domain(n *node) (int32, bool) {
	domain := c.topology.of[n.number]
	return domain, domain >= 0 && (c.on == nil || c.on[n.number])
}

// at returns the number of pods that the counter selects in the node's domain.
func (c *counter) at(n *node) int { return c.pods.at(c.topology.of[n.number]) }

// in returns the number of pods that the counter selects in a domain, by the value of the label.
func (c *counter) in(value string) int {
	domain, known := c.topology.numbers[value]
	if !known {
		return 0
	}
	return c.pods.at(domain)
}

// setTopology sets the topology whose domains an empty counter counts pods for.
func (c *counter) setTopology(key string, of *topology) {
	c.key, c.topology, c.pods = key, of, of.tally()
	c.local = c.domains == nil && !c.attracts && of.unique
}

// add adds `by` to the count of the node's domain if the counter selects the pod.
func (c *counter) add(p pod, n *node, by int) {
	if c.selects(p) {
		c.count(n, by)
	}
}

// count adds `by` to the count of the node's domain.
func (c *counter) count(n *node, by int) {
	if domain, is := c.domain(n); is {
		c.change(domain, by)
	}
}

// change adds `by` to the count of a domain.
func (c *counter) change(domain int32, by int) {
	c.pods.add(domain, by)
	c.total += by
	if c.domains != nil && c.domains.byPods != nil && c.domains.nodes.at(domain) > 0 {
		now := c.pods.at(domain)
		c.domains.raise(now-by, -1)
		c.domains.raise(now, 1)
	}
}

// addNode adds `by` to the number of nodes in the node's domain. Domains without nodes are ignored
// when the smallest number of pods is determined.
func (c *counter) addNode(n *node, by int) {
	domain, is := c.domain(n)
	if !is || c.domains == nil {
		return
	}
	before := c.domains.nodes.at(domain)
	c.domains.nodes.add(domain, by)
	switch {
	case c.domains.byPods == nil:
	case before == 0:
		c.domains.raise(c.pods.at(domain), 1)
	case before+by == 0:
		c.domains.raise(c.pods.at(domain), -1)
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
func (c *counter) least(wanted int) int {
	count, least := 0, math.MaxInt32
	for pods, domains := range c.domains.byPods {
		count += domains
		least = min(least, pods)
	}
	for domain, nodes := range c.domains.nodes.few {
		if nodes > 0 {
			count++
			least = min(least, int(c.pods.few[domain]))
		}
	}
	if count < wanted {
		return 0
	}
	return least
}
