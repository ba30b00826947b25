// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"slices"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
	"tidekeeper.dev/tidekeeper/test/seed"
)

// failover stops a leader that has a warm standby, and measures the time until the standby has
// reverted a change that another client made meanwhile.
func (r *run) failover(t *testing.T) {
	t.Helper()
	r.manager.Stop(t)
	r.start(t, elect...)
	r.awaitLevel(t)
	var took []time.Duration
	for range r.rounds {
		leader := r.manager
		r.start(t, elect...)
		r.awaitIdle(t)
		audit, begin := r.Audit(t, "tidekeeper/"), time.Now()
		leader.Stop(t)
		r.patch(t, framework.Node(seed.NodeName(0)), map[string]any{"metadata": map[string]any{"labels": map[string]any{"scale.example.com/first": "2"}}})
		last, _ := r.followNodes(t, audit, begin, 1)
		took = append(took, last)
	}
	r.report.add(figure{
		Key: "failover", What: "failover, from the leader's clean stop to the next correct action, worst", Value: slices.Max(took).Seconds(), Unit: "s", Most: new(2.0),
	})
}
