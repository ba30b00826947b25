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

// AllowWrite tells whether the node may be written now, and counts that as a write.
// It slows down writes to nodes that never come to rest: another program wants
// another value of a key, or two pools move a node in and out of each other, as
// what one puts there changes what the other selects. No schema can see that
// coming.
func (c *Cluster) AllowWrite(node string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[node]
	if n == nil || n.object == nil {
		return true // It is gone, as its write will find out.
	}
	if n.limiter == nil {
		n.limiter = rate.NewLimiter(rate.Every(plan.WriteInterval), plan.WriteBurst)
	}
	return n.limiter.AllowN(now, 1)
}

// BeginWrite opens a write to the node, which may be newer than what the model
// knows: it returns the plan, and a function that closes the write again. In
// between, none of the pools that had a say in the plan is seen as clean. Pools
// that are frozen are left as they are.
func (c *Cluster) BeginWrite(node *corev1.Node, frozen ...string) (plan.NodePlan, func() Dirty) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _ := ownership.Parse(node.Annotations[tidekeeperv1.OwnershipAnnotation])
	claims := c.poolsOnNode(node, r)
	for _, claim := range claims {
		if p := c.pools[claim.Pool.Name]; p != nil {
			p.writes++
		}
	}
	nodePlan := plan.ForNodeExcept(node, claims, sets.New(frozen...))
	return nodePlan, func() Dirty {
		c.lock()
		for _, claim := range claims {
			p := c.pools[claim.Pool.Name]
			if p == nil || p.object.UID != claim.Pool.UID {
				continue
			}
			p.writes--
			if p.writes == 0 {
				c.dirty.Levels.Insert(claim.Pool.Name)
			}
		}
		return c.unlock()
	}
}

// RecordWrite takes in that a plan was carried out on a node, for the news.
func (c *Cluster) RecordWrite(node string, nodePlan *plan.NodePlan) Dirty {
	c.lock()
	for _, change := range nodePlan.Changes {
		if p := c.pools[change.Pool]; p != nil {
			p.events.recordChange(node, change)
			c.dirty.Levels.Insert(change.Pool)
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

// RecordFailure takes in that a node could not be written for some pools, for the news. If
// it was refused, and not only out of reach, that is so until it is written, or
// nothing is to be done to it any more.
func (c *Cluster) RecordFailure(node string, pools []string, err error, refused bool) Dirty {
	c.lock()
	n := c.nodes[node]
	for _, pool := range pools {
		p := c.pools[pool]
		if p == nil || n == nil {
			continue
		}
		c.dirty.Levels.Insert(pool)
		if p.evictionAllowed.Has(node) {
			// It takes nobody's turn: it waits again, behind those that can be
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

// clearRefusal takes in that a node can be written for a pool again, or need not be.
func (c *Cluster) clearRefusal(n *nodeState, pool string) {
	n.refused.Delete(pool)
	if p := c.pools[pool]; p != nil {
		delete(p.refused, n.name)
		c.dirty.Pools.Insert(pool)
	}
}

// RecordThrottled takes in that a node is written so often that the plan has to wait, for
// the news.
func (c *Cluster) RecordThrottled(node string, nodePlan *plan.NodePlan) Dirty {
	c.lock()
	for _, change := range nodePlan.Changes {
		if p := c.pools[change.Pool]; p != nil {
			p.events.recordConflictingWriter(node)
			c.dirty.Levels.Insert(change.Pool)
		}
	}
	return c.unlock()
}
