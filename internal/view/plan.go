// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	"tidekeeper.dev/tidekeeper/internal/nodepool/preview"
)

// Plan has the changes that applying or deleting NodePools would cause.
type Plan struct {
	Pools []PoolPlan     `json:"pools"`
	Nodes []preview.Node `json:"nodes"`
	// Pods is null if the user may not read pods.
	Pods []preview.Pod `json:"pods"`
}

// Actions for a pool in a plan.
const (
	PoolCreated   = "Create"
	PoolChanged   = "Change"
	PoolDeleted   = "Delete"
	PoolUnchanged = "None"
)

// PoolPlan is the change of a pool itself.
type PoolPlan struct {
	Name   string `json:"name"`
	Action string `json:"action"` // Create, Change, Delete or None

	RuntimeClass *preview.RuntimeClass `json:"runtimeClass,omitempty"`
}

// Changes reports whether the plan changes anything.
func (p *Plan) Changes() bool {
	return len(p.Nodes) > 0 || slices.ContainsFunc(p.Pools, func(p PoolPlan) bool { return p.Action != PoolUnchanged || p.RuntimeClass != nil })
}

// DeletedRuntimeClasses returns the names of the RuntimeClasses that would be deleted.
func (p *Plan) DeletedRuntimeClasses() (names []string) {
	for _, pool := range p.Pools {
		if pool.RuntimeClass != nil && pool.RuntimeClass.Action == preview.ActionDelete {
			names = append(names, pool.RuntimeClass.Name)
		}
	}
	return names
}

// PlanCounts has the totals of a plan.
type PlanCounts struct {
	Changed, Joining, Leaving    int
	ConflictsBegin, ConflictsEnd int
	NeverSettle                  int
	Evicted, EvictedFrom         int // evicted pods, and the nodes from which they are evicted
	NotReschedulable             int
	NotRecreatable               int
}

// Counts returns the totals of a plan.
func (p *Plan) Counts() PlanCounts {
	c := PlanCounts{}
	for _, n := range p.Nodes {
		c.Changed += min(len(n.Changes), 1)
		c.Joining += min(len(n.Joins), 1)
		c.Leaving += min(len(n.Leaves), 1)
		c.ConflictsBegin += min(len(n.ConflictsBegin), 1)
		c.ConflictsEnd += min(len(n.ConflictsEnd), 1)
		if n.NeverSettles {
			c.NeverSettle++
		}
	}
	from := map[string]bool{}
	for _, pod := range p.Pods {
		switch pod.Outcome {
		case preview.OutcomeEvicted:
			c.Evicted++
			from[pod.Node] = true
		case preview.OutcomeNotRecreatable:
			c.NotRecreatable++
		default:
			c.NotReschedulable++
		}
	}
	c.EvictedFrom = len(from)
	return c
}
