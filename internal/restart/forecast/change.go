// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// A forecast cannot foresee changes of ConfigMaps and Secrets, but the status of a ScheduledRestart
// shows whether a past change waits for its restart. The content itself is irrelevant: it only
// matters whether the pods were started with it.

// unserved is appended to the hash of the known content to get a different hash, for content with
// which the pods were not started.
const unserved = "unserved"

// configOf returns the state of a ScheduledRestart's ConfigMaps and Secrets, as far as its status
// shows; nil if spec.onConfigChange is not set, or if the status has no hash yet.
func configOf(restart *tidekeeperv1.ScheduledRestart) *decision.Config {
	status := &restart.Status
	if restart.Spec.OnConfigChange == "" || status.ConfigHash == "" {
		return nil
	}
	c := &decision.Config{Hash: status.ConfigHash, Live: true}
	switch next := status.NextChangeTime; {
	case next != nil:
		spread := time.Duration(restart.Spec.SpreadSeconds) * time.Second
		c.Hash += unserved
		c.Changed = next.Add(-decision.DefaultChangeSettle - schedule.Spread(restart.Namespace, restart.Name, spread))
	case status.Active != nil && status.Active.ConfigHash != "":
		c.Hash = status.Active.ConfigHash
	}
	return c
}

// oldest returns the creation time of a workload's oldest pod. If it is unknown and a change is
// pending, it returns a time before the change, since otherwise the change would not be pending.
func (o *object) oldest(t *target) time.Time {
	if t.Oldest.IsZero() && o.config != nil && !o.config.Changed.IsZero() {
		return o.config.Changed.Add(-time.Second)
	}
	return t.Oldest
}
