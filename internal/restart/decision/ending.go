// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// ending ends the restart in progress, and counts consecutive failures.
type ending struct {
	state   *state
	active  *activeRestart
	history *history
	age     *ageTrigger
	change  *changeTrigger
	budget  *budgetGate
	// startups lists the startup time of each new pod of the restart; nil if unknown.
	startups []time.Duration
}

// complete ends the restart in progress with the given outcome. If the outcome is skipped or
// missed, nothing was sent to the target.
func (e *ending) complete(outcome tidekeeperv1.Outcome, reason, message string) {
	status, active := e.state.status, e.active.end()
	e.budget.renew()
	if active.Trigger == tidekeeperv1.TriggerAge {
		e.age.ended(active, reason)
	}
	record := tidekeeperv1.RestartRecord{
		ScheduledTime: active.ScheduledTime, Trigger: active.Trigger, Outcome: outcome, Reason: reason, Message: message,
	}
	sent := outcome == tidekeeperv1.OutcomeSucceeded || outcome == tidekeeperv1.OutcomeFailed
	if active.Trigger == tidekeeperv1.TriggerChange {
		record.ConfigHash = active.ConfigHash
		if sent {
			e.change.interval.begin(active)
		}
	}
	if sent {
		e.change.serve(active, reason)
		record.StartedTime = new(active.StartedTime)
	}
	switch outcome {
	case tidekeeperv1.OutcomeSucceeded:
		record.Pods, record.PodsLeftOut = e.state.target.Updates, e.state.target.Excluded
		if active.Eviction != nil {
			record.Pods = e.state.target.Pods // The number also includes the pods below the partition of a StatefulSet.
		}
		record.PodStartup = podStartup(e.startups, e.history.past)
		if status.ConsecutiveFailures < e.state.spec.FailureLimit {
			// A schedule that was stopped by failures resumes only after an edit of the spec, even
			// if a requested restart succeeds.
			e.forgetFailures()
		}
		status.LastSuccessfulTime = &metav1.Time{Time: e.state.now}
	case tidekeeperv1.OutcomeFailed:
		status.ConsecutiveFailures++
	}
	e.history.record(record)
}

// forgetFailures resets the number of consecutive failures.
func (e *ending) forgetFailures() { e.state.status.ConsecutiveFailures = 0 }
