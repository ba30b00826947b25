// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// StartRecording makes the model record joins and leaves from now on. Those that happened
// while no manager was recording are recorded now, as far as the ownership records show
// them.
func (c *Cluster) StartRecording() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recording {
		return
	}
	c.recording = true
	for name, p := range c.pools {
		if !p.object.DeletionTimestamp.IsZero() {
			continue
		}
		recorded := sets.New[string]()
		if o := c.owners[name]; o != nil {
			recorded = o.nodes
		}
		for node := range p.members.Intersection(p.outdated).Difference(recorded) {
			p.events.recordJoin(node)
		}
		for node := range recorded.Difference(p.members) {
			p.events.recordLeave(node)
		}
	}
}

// TakeEvents returns the events of the pool that are due, and after how long to ask again if
// others are not due yet.
func (c *Cluster) TakeEvents(pool string, now time.Time) ([]Event, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.pools[pool]
	if !known {
		return nil, 0
	}
	return p.events.take(now)
}
