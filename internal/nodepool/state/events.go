// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// StartRecording makes joining and leaving news from now on. What happened while nobody
// told is told now, as far as the records show it.
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
		if t := c.owners[name]; t != nil {
			recorded = t.nodes
		}
		for node := range p.members.Intersection(p.outdated).Difference(recorded) {
			p.events.recordJoin(node)
		}
		for node := range recorded.Difference(p.members) {
			p.events.recordLeave(node)
		}
	}
}

// TakeEvents returns what there is to tell of the pool at this time, and after how
// long to ask again if something is not ripe yet.
func (c *Cluster) TakeEvents(pool string, now time.Time) ([]Event, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.pools[pool]
	if !known {
		return nil, 0
	}
	return p.events.take(now)
}
