// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// pools holds all node pools with their compiled selectors. It does not use the memberships that
// the node pool controller computes, because that controller may be turned off.
type pools struct {
	mu sync.Mutex
	// byPrecedence lists the pools by age, oldest first. If several pools select a node, the node
	// belongs to the oldest of these pools.
	byPrecedence []compiledPool
}

type compiledPool struct {
	*tidekeeperv1.NodePool
	selector labels.Selector
}

// set adds a node pool, or replaces the pool with the same name.
func (p *pools) set(pool *tidekeeperv1.NodePool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(pool.Name)
	selector, err := plan.Selector(pool)
	if err != nil {
		return // A pool with an invalid selector selects no nodes, and its status reports the error.
	}
	added := compiledPool{pool, selector}
	at, _ := slices.BinarySearchFunc(p.byPrecedence, added, func(a, b compiledPool) int { return plan.ByPrecedence(a.NodePool, b.NodePool) })
	p.byPrecedence = slices.Insert(p.byPrecedence, at, added)
}

// remove removes the node pool with the given name.
func (p *pools) remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
}

func (p *pools) drop(name string) {
	p.byPrecedence = slices.DeleteFunc(p.byPrecedence, func(c compiledPool) bool { return c.Name == name })
}

// poolOf returns the name of the pool to which the node belongs: the oldest pool that selects the
// node. It returns "" if no pool selects the node.
func (p *pools) poolOf(node *corev1.Node) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.byPrecedence {
		if c.selector.Matches(labels.Set(node.Labels)) {
			return c.Name
		}
	}
	return ""
}
