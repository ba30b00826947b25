// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

// Reasons of events on a workload.
const (
	// The ScheduledRestart of the workload was made, follows its annotations
	// again, or went with the annotation that had made it.
	EventCreated = "ScheduledRestartCreated"
	EventUpdated = "ScheduledRestartUpdated"
	EventDeleted = "ScheduledRestartDeleted"
	// EventInvalidOptIn: an annotation has a value that cannot be used. Nothing
	// is changed until it is corrected.
	EventInvalidOptIn = "InvalidOptIn"
	// EventExists: there is a ScheduledRestart of the workload's name that is
	// not from its opt-in. It is left alone.
	EventExists = "ScheduledRestartExists"
	// EventFailed: something went wrong that is tried again.
	EventFailed = "ScheduledRestartFailed"
)
