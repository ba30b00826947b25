// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// A forecast cannot foresee changes of ConfigMaps and Secrets, but the status shows a past change that waits
// for its restart. The content itself does not matter: only whether the pods were started with it.

// unserved represents the hash of content that the pods were not started with.
const unserved = "unserved"

// configOf returns the content that onConfigChange of a ScheduledRestart covers; nil if it covers none.
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

// oldest returns the creation time of the oldest pod of a workload. If unknown, it is a time before the
// pending change, as the change would not be pending otherwise.
func (o *object) oldest(t *target) time.Time {
	if t.Oldest.IsZero() && o.config != nil && !o.config.Changed.IsZero() {
		return o.config.Changed.Add(-time.Second)
	}
	return t.Oldest
}
