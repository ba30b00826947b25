// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Condition types that NodePool, ScheduledRestart and Freeze share, as kstatus defines them.
const (
	// ConditionReady is True while the object does as its spec says, or deliberately does
	// nothing. Its reason is the STATUS column of kubectl get.
	ConditionReady = "Ready"
	// ConditionReconciling is present only while it is True: work is in progress, or waits for
	// an event that is expected to happen.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present only while it is True: the object does not
	// recover until a user changes something.
	ConditionStalled = "Stalled"
)

// EventReconcileFailed is the reason of an event about an object of any kind: an error
// occurred, and the manager retries.
const EventReconcileFailed = "ReconcileFailed"
