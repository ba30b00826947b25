// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// WorstNode simulates the loss of each named node in turn, and returns the node whose loss leaves
// the most pods unschedulable. Among equal losses, it returns the loss with the most pods to place,
// then the first node by name. found is false if none of the nodes exists.
func (c *Cluster) WorstNode(names []string) (node string, worst Loss, found bool) {
	for _, n := range c.named(names) {
		name := n.object.Name
		if l := c.Lose([]string{name}, nil); !found || worseThan(l, name, worst, node) {
			node, worst, found = name, l, true
		}
	}
	return node, worst, found
}

// worstZone is like [Cluster.WorstNode], but simulates the loss of each zone of the named nodes. A
// zone is lost with all its nodes, but only pods on the named nodes are reported. The other pods of
// the zone only use resources of the remaining nodes.
func (c *Cluster) worstZone(names []string) (zone string, worst Loss, found bool) {
	zones := c.Zones()
	for _, name := range c.Members(names).Zones() {
		if l := c.Lose(zones[name], names); !found || worseThan(l, name, worst, zone) {
			zone, worst, found = name, l, true
		}
	}
	return zone, worst, found
}

func worseThan(a Loss, nameOfA string, b Loss, nameOfB string) bool {
	return cmp.Or(cmp.Compare(a.Homeless(), b.Homeless()), cmp.Compare(a.Pods, b.Pods), strings.Compare(nameOfB, nameOfA)) > 0
}

// Headroom is the worst loss of a node or zone among the losses covered by a pool's headroom spec.
type Headroom struct {
	// Lost describes the lost node or zone, such as "node worker-1" or "zone eu-west-1a".
	Lost string
	Loss
	// NoNodes is set if the pool has no nodes. NoZones is set if the spec requires headroom for a
	// zone but none of the pool's nodes is in a zone.
	NoNodes, NoZones bool
}

// Headroom simulates the losses of nodes and zones that the headroom spec `ask` covers, and returns
// the worst. names lists the nodes of the pool.
func (c *Cluster) Headroom(names []string, ask tidekeeperv1.Headroom) Headroom {
	h := Headroom{NoNodes: len(c.named(names)) == 0}
	if ask.Nodes > 0 {
		if node, loss, found := c.WorstNode(names); found {
			h.Lost, h.Loss = "node "+node, loss
		}
	}
	if ask.Zones > 0 {
		zone, loss, found := c.worstZone(names)
		h.NoZones = !found && !h.NoNodes
		if found && (h.Lost == "" || loss.Homeless() >= h.Homeless()) {
			h.Lost, h.Loss = "zone "+zone, loss
		}
	}
	return h
}
