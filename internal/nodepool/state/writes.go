// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// AllowWrite reports whether the node may be written now, and counts that as a write. It
// throttles writes to nodes whose changes are reverted again and again: because another
// client wants another value for a key, or because two pools keep adding a node to each
// other and removing it, as the settings of one change what the other selects. Validation
// of the pools cannot rule that out.
func (c *Cluster) AllowWrite(node string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[node]
	if n == nil || n.object == nil {
		return true // The node is gone, and its write will return that.
	}
	if n.limiter == nil {
		n.limiter = rate.NewLimiter(rate.Every(plan.WriteInterval), plan.WriteBurst)
	}
	return n.limiter.AllowN(now, 1)
}

// BeginWrite begins a write to the node, which may be newer than in the model. It returns the
// plan, and a function that ends the write. In between, the snapshots of all pools of the
// plan report that they are being written. Frozen pools are left as they are.
func (c *Cluster) BeginWrite(node *corev1.Node, frozen ...string) (plan.NodePlan, func() Dirty) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _ := ownership.Parse(node.Annotations[tidekeeperv1.OwnershipAnnotation])
	pools := c.poolsOnNode(node, r)
	for _, on := range pools {
		if p := c.pools[on.Pool.Name]; p != nil {
			p.writes++
		}
	}
	nodePlan := plan.ForNodeExcept(node, pools, sets.New(frozen...))
	return nodePlan, func() Dirty {
		c.lock()
		for _, on := range pools {
			p := c.pools[on.Pool.Name]
			if p == nil || p.object.UID != on.Pool.UID {
				continue
			}
			p.writes--
			if p.writes == 0 {
				c.dirty.Utilization.Insert(on.Pool.Name)
			}
		}
		return c.unlock()
	}
}

// RecordWrite records that a plan was carried out on a node, also for the events.
func (c *Cluster) RecordWrite(node string, nodePlan *plan.NodePlan) Dirty {
	c.lock()
	for _, change := range nodePlan.Changes {
		if p := c.pools[change.Pool]; p != nil {
			p.events.recordChange(node, change)
			c.dirty.Utilization.Insert(change.Pool)
		}
	}
	for _, pool := range nodePlan.BeingDeleted {
		if p := c.pools[pool]; p != nil {
			p.cleanups[node]++
			c.dirty.Pools.Insert(pool)
		}
	}
	if n := c.nodes[node]; n != nil {
		for _, pool := range nodePlan.Affected {
			if n.refused.Has(pool) {
				c.clearRefusal(n, pool)
			}
			if p := c.pools[pool]; p != nil {
				p.failing.Delete(node)
			}
		}
	}
	return c.unlock()
}

// RecordFailure records that a node could not be written for some pools, also for the events.
// If the API server refused the write, the pools count as refused on the node until it is
// written for them, or no longer needs a write for them.
func (c *Cluster) RecordFailure(node string, pools []string, err error, refused bool) Dirty {
	c.lock()
	n := c.nodes[node]
	for _, pool := range pools {
		p := c.pools[pool]
		if p == nil || n == nil {
			continue
		}
		c.dirty.Utilization.Insert(pool)
		if p.evictionAllowed.Has(node) {
			// It must not hold up other nodes, so it waits again, behind those that can be
			// written.
			p.failing.Insert(node)
			p.evictionAllowed.Delete(node)
			c.planNode(n)
		}
		message := text.Shorten(err.Error(), maxReasonLength)
		if !refused || p.refused[node] != message {
			p.events.recordFailure(node, message)
		}
		if refused && n.object != nil {
			p.refused[node] = message
			if n.refused == nil {
				n.refused = sets.New[string]()
			}
			n.refused.Insert(pool)
			c.dirty.Pools.Insert(pool)
		}
	}
	return c.unlock()
}

// clearRefusal records that a node can be written for a pool again, or no longer needs it.
func (c *Cluster) clearRefusal(n *nodeState, pool string) {
	n.refused.Delete(pool)
	if p := c.pools[pool]; p != nil {
		delete(p.refused, n.name)
		c.dirty.Pools.Insert(pool)
	}
}

// RecordThrottled records, for the events, that a plan has to wait because the node was
// written too often.
func (c *Cluster) RecordThrottled(node string, nodePlan *plan.NodePlan) Dirty {
	c.lock()
	for _, change := range nodePlan.Changes {
		if p := c.pools[change.Pool]; p != nil {
			p.events.recordConflictingWriter(node)
			c.dirty.Utilization.Insert(change.Pool)
		}
	}
	return c.unlock()
}
