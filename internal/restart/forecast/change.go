// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// A forecast cannot foresee changes of ConfigMaps and Secrets. The status of a ScheduledRestart
// shows whether a restart for a past change is pending. The content itself is irrelevant to a
// forecast, which only needs to know whether the pods were started with it.

// unserved is appended to the hash of the content with which the pods were started. The result is
// the hash of the changed content in a forecast, because the real hash is not in the status.
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
// pending, oldest returns a time before the change. Otherwise the pods would count as newer than
// the change, and the restart would be skipped.
func (o *object) oldest(t *target) time.Time {
	if t.Oldest.IsZero() && o.config != nil && !o.config.Changed.IsZero() {
		return o.config.Changed.Add(-time.Second)
	}
	return t.Oldest
}
