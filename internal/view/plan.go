// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/nodepool/preview"
)

// Plan lists the changes that applying and deleting NodePools would cause.
type Plan struct {
	Pools []PoolPlan     `json:"pools"`
	Nodes []preview.Node `json:"nodes"`
	// Pods lists the affected pods. It is null if the user is not allowed to list pods.
	Pods []preview.Pod `json:"pods"`
	// Blockers lists the PodDisruptionBudgets that currently block evictions of the plan. Evictions
	// by taints that disregard PodDisruptionBudgets are left out. Blockers is empty if the user is
	// not allowed to list PodDisruptionBudgets.
	Blockers []drain.Blocker `json:"blockers,omitempty"`
}

// Values of [PoolPlan.Action].
const (
	PoolCreated   = "Create"
	PoolChanged   = "Change"
	PoolDeleted   = "Delete"
	PoolUnchanged = "None"
)

// PoolPlan is the planned change of a NodePool.
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

// PlanCounts holds the numbers of nodes and pods that a plan affects, by the kind of effect.
type PlanCounts struct {
	Changed, Joining, Leaving    int
	ConflictsBegin, ConflictsEnd int
	NeverSettle                  int
	Evicted, EvictedFrom         int // number of evicted pods, and of the nodes that they leave
	WithinBudgets                int // number of evicted pods that are evicted within their budgets
	NotReschedulable             int
	NotRecreatable               int
}

// Counts returns the numbers of nodes and pods that the plan affects.
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
			if pod.WithinBudgets {
				c.WithinBudgets++
			}
		case preview.OutcomeNotRecreatable:
			c.NotRecreatable++
		default:
			c.NotReschedulable++
		}
	}
	c.EvictedFrom = len(from)
	return c
}
