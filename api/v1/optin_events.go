// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Reasons of events about a workload that opts in to scheduled restarts.
const (
	// EventScheduledRestartCreated is recorded when the ScheduledRestart of the
	// workload was created.
	EventScheduledRestartCreated = "ScheduledRestartCreated"
	// EventScheduledRestartUpdated is recorded when the ScheduledRestart of the
	// workload was changed to follow the annotations.
	EventScheduledRestartUpdated = "ScheduledRestartUpdated"
	// EventScheduledRestartDeleted is recorded when the ScheduledRestart was deleted
	// because the workload no longer opts in.
	EventScheduledRestartDeleted = "ScheduledRestartDeleted"
	// EventInvalidOptIn is recorded when an annotation has an invalid value. The
	// ScheduledRestart stays unchanged until the value is corrected.
	EventInvalidOptIn = "InvalidOptIn"
	// EventScheduledRestartExists is recorded when a ScheduledRestart with the name of the
	// workload exists and was not created by the opt-in. The manager does not change that
	// ScheduledRestart.
	EventScheduledRestartExists = "ScheduledRestartExists"
	// EventScheduledRestartFailed is recorded when an error occurred and the manager retries.
	EventScheduledRestartFailed = "ScheduledRestartFailed"
)
