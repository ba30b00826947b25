// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Zones returns the names of the nodes of each zone. Nodes without the label
// topology.kubernetes.io/zone are in none.
func (c *Cluster) Zones() map[string][]string {
	zones := map[string][]string{}
	for _, n := range c.nodes {
		if zone := n.object.Labels[corev1.LabelTopologyZone]; zone != "" {
			zones[zone] = append(zones[zone], n.object.Name)
		}
	}
	return zones
}

// ZonesOf returns the zones of the nodes of these names, in their order.
func (c *Cluster) ZonesOf(names []string) (zones []string) {
	for _, n := range c.members(names) {
		if zone := n.object.Labels[corev1.LabelTopologyZone]; zone != "" {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// WorstNode returns the loss of that node of these names that leaves most pods without place;
// of several, of the one with most pods, then of the first by name. It returns false if none of
// the nodes exists.
func (c *Cluster) WorstNode(names []string) (node string, worst Loss, found bool) {
	for _, n := range c.members(names) {
		name := n.object.Name
		if l := c.Lose([]string{name}, nil); !found || worseThan(l, name, worst, node) {
			node, worst, found = name, l, true
		}
	}
	return node, worst, found
}

// worstZone returns the same of the zones of the nodes. Of a zone, the pods on nodes of other
// names need a place, too, but are not reported.
func (c *Cluster) worstZone(names []string) (zone string, worst Loss, found bool) {
	zones := c.Zones()
	for _, name := range c.ZonesOf(names) {
		if l := c.Lose(zones[name], names); !found || worseThan(l, name, worst, zone) {
			zone, worst, found = name, l, true
		}
	}
	return zone, worst, found
}

func worseThan(a Loss, nameOfA string, b Loss, nameOfB string) bool {
	return cmp.Or(cmp.Compare(a.Homeless(), b.Homeless()), cmp.Compare(a.Pods, b.Pods), strings.Compare(nameOfB, nameOfA)) > 0
}

// Headroom is the worst of the losses that a pool should bear.
type Headroom struct {
	// Lost is what is lost, such as "node worker-1" or "zone eu-west-1a".
	Lost string
	Loss
	// NoNodes and NoZones say that there is nothing to lose of the kind that was asked for: the
	// pool has no node, or none of its nodes is in a zone.
	NoNodes, NoZones bool
}

// Headroom returns what becomes of the pods of a pool, whose nodes have these names, after the
// worst loss of those that it asks for.
func (c *Cluster) Headroom(names []string, ask tidekeeperv1.Headroom) Headroom {
	h := Headroom{NoNodes: len(c.members(names)) == 0}
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
