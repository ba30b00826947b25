// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// A change of ConfigMaps and Secrets cannot be foreseen, but a change that has happened and waits to be
// served is in the status. The content itself does not matter: only whether it is that with
// which the pods were started.

// unserved stands for the hash of a content that the status does not have.
const unserved = "unserved"

// configOf returns the content that counts for a ScheduledRestart; nil if none does.
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

// oldest returns when the oldest pod of a workload was created. Where that is not known, it is
// before a change that waits: otherwise that would not wait.
func (o *object) oldest(t *target) time.Time {
	if t.Oldest.IsZero() && o.config != nil && !o.config.Changed.IsZero() {
		return o.config.Changed.Add(-time.Second)
	}
	return t.Oldest
}
