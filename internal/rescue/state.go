// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// StateOf returns the state of the restart that was requested with the ScheduledRestart for the
// time `start` or later. It returns false if no restart was requested. A restart in progress counts
// regardless of the time for which it was requested.
func StateOf(restart *tidekeeperv1.ScheduledRestart, start, now time.Time) (Restart, bool) {
	requested, err := decision.RequestedTime(restart, now)
	waits := Restart{State: Waiting}
	if ready := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil && ready.Reason != tidekeeperv1.ReasonSuspended && ready.Reason != tidekeeperv1.ReasonRestarting {
		waits.Message = ready.Message
	}
	switch last := restart.Status.LastRequestTime; {
	case restart.Status.Active != nil:
		waits.State = Running
		return waits, true // A restart in progress for an earlier request also replaces the pods.
	case last != nil && err == nil && requested.After(last.Time) && !requested.Before(start):
		return waits, true
	case last != nil && !last.Time.Before(start):
		return outcomeOf(restart, start), true
	case err != nil || requested.Before(start):
		return Restart{}, false
	default:
		return waits, true
	}
}

// outcomeOf returns the outcome of the last restart that was requested for the time `start` or
// later. A restart that is not in the history counts as succeeded.
func outcomeOf(restart *tidekeeperv1.ScheduledRestart, start time.Time) Restart {
	for i := range restart.Status.History {
		record := &restart.Status.History[i]
		if record.ScheduledTime.Time.Before(start) {
			continue
		}
		if record.Outcome == tidekeeperv1.OutcomeSucceeded {
			return Restart{State: Succeeded, Tick: record.ScheduledTime.Time}
		}
		return Restart{State: Failed, Tick: record.ScheduledTime.Time, Message: fmt.Sprintf("%s, %s: %s", record.Outcome, record.Reason, cmp.Or(record.Message, "see its history"))}
	}
	return Restart{State: Succeeded, Tick: restart.Status.LastRequestTime.Time}
}
