// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/text"
)

const (
	// heartbeat is the interval at which heartbeats are written. Kubernetes passes an eviction on
	// to the next responder after 20 minutes without a heartbeat.
	heartbeat = time.Minute
	// shortestHeartbeat is the shortest interval between two heartbeats that Kubernetes recommends.
	shortestHeartbeat = 20 * time.Second
	// longestMessage is the maximum length of a message in the status of an Eviction, less than the
	// 4000 characters that API servers accept.
	longestMessage = 1000
)

// wait returns a step that reports what the eviction waits for. The status is written if the
// message has changed, or if the last heartbeat is at least the interval `heartbeat` ago.
func (d *decider) wait(message string) Step {
	status, message := d.entry.DeepCopy(), text.Shorten(message, longestMessage)
	due := d.sinceHeartbeat() >= heartbeat
	changed := status.Message == nil || *status.Message != message
	if due || changed && d.sinceHeartbeat() >= shortestHeartbeat {
		status.HeartbeatTime = d.present()
	}
	step := Step{Wake: status.HeartbeatTime.Add(heartbeat)}
	if due || changed {
		status.Message = &message
		step.Status = status
	}
	return step
}

// complete returns a step that completes the manager's part of the Eviction. The next responder
// then takes over, unless the pod is gone.
func (d *decider) complete(outcome Outcome, message string) Step {
	status := d.entry.DeepCopy()
	status.CompletionTime, status.Message = d.present(), new(text.Shorten(message, longestMessage))
	return Step{Status: status, Outcome: outcome}
}

// sinceHeartbeat returns the time since the last heartbeat. Before the first heartbeat, it returns
// `heartbeat`, so that a heartbeat is due.
func (d *decider) sinceHeartbeat() time.Duration {
	if d.entry.HeartbeatTime == nil {
		return heartbeat
	}
	return d.Now.Sub(d.entry.HeartbeatTime.Time)
}

// present returns the time for a new heartbeat or completion: now, or a later time in the entry if
// the clock of this machine is behind. API servers reject a heartbeat or completion before these
// times.
func (d *decider) present() *metav1.Time {
	now := metav1.NewTime(d.Now.UTC().Truncate(time.Second))
	for _, earlier := range []*metav1.Time{d.entry.StartTime, d.entry.HeartbeatTime} {
		if now.Before(earlier) {
			now = *earlier
		}
	}
	return &now
}
