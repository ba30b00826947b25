// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// clocks remembers since when each pod has waited for its next step. Times in the API have whole seconds,
// which is too coarse for short delays; and a pod that other clients change while it waits must not start
// over.
type clocks struct {
	mu    sync.Mutex
	ofPod map[types.UID]clock
}

type clock struct {
	turn  string
	since time.Time
}

func newClocks() *clocks { return &clocks{ofPod: map[types.UID]clock{}} }

// since returns the time at which the pod was first seen to wait for the turn, and whether that is now.
func (c *clocks) since(pod types.UID, turn string, now time.Time) (since time.Time, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.ofPod[pod]; ok && old.turn == turn {
		return old.since, false
	}
	c.ofPod[pod] = clock{turn: turn, since: now}
	return now, true
}

// forget drops a pod, and returns the last turn that it waited for.
func (c *clocks) forget(pod types.UID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.ofPod[pod].turn
	delete(c.ofPod, pod)
	return last
}
