// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// clocks records since when each pod has been waiting for its next step. API timestamps cannot be
// used instead, because their resolution of one second is too coarse for short delays.
type clocks struct {
	mu    sync.Mutex
	ofPod map[types.UID]clock
}

type clock struct {
	turn  string
	since time.Time
}

func newClocks() *clocks { return &clocks{ofPod: map[types.UID]clock{}} }

// since returns the time since which a pod has been waiting for its next step. The parameter "turn"
// identifies the step (see the function turn), so that a change of the pod by another client does
// not restart the wait. `first` is set if this is the first call with this turn.
func (c *clocks) since(pod types.UID, turn string, now time.Time) (since time.Time, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.ofPod[pod]; ok && old.turn == turn {
		return old.since, false
	}
	c.ofPod[pod] = clock{turn: turn, since: now}
	return now, true
}

// forget removes a pod from the records. It returns the identifier of the last step for which the
// pod waited, or "" if there is none.
func (c *clocks) forget(pod types.UID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.ofPod[pod].turn
	delete(c.ofPod, pod)
	return last
}
