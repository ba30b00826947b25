// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// WorstNode returns the named node whose loss would leave the most pods without a place, and that loss; among
// equals, the node with the most pods, then the first by name. It returns false if none of the nodes exists.
func (c *Cluster) WorstNode(names []string) (node string, worst Loss, found bool) {
	for _, n := range c.named(names) {
		name := n.object.Name
		if l := c.Lose([]string{name}, nil); !found || worseThan(l, name, worst, node) {
			node, worst, found = name, l, true
		}
	}
	return node, worst, found
}

// worstZone is [Cluster.WorstNode] for the zones of the named nodes. Pods on other nodes of a zone need a
// place, too, but are not reported.
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

// Headroom is the worst of the losses that a pool wants to survive.
type Headroom struct {
	// Lost names the lost node or zone, such as "node worker-1" or "zone eu-west-1a".
	Lost string
	Loss
	// NoNodes is set if the pool has no node, and NoZones if none of its nodes has a zone.
	NoNodes, NoZones bool
}

// Headroom returns the worst of the losses that the pool with these nodes asks to survive.
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
