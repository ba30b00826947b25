// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Reasons of the condition Ready of a Freeze. A Freeze with an invalid selector, which the schema
// normally rejects, applies to all namespaces and has the reason [ReasonInvalidSelector].
const (
	// ReasonPending means that the freeze has not begun yet.
	ReasonPending = "Pending"
	// ReasonInForce means that the freeze has begun and has not ended.
	ReasonInForce = "InForce"
	// ReasonEnded means that the freeze has ended.
	ReasonEnded = "Ended"
)

// ConditionInForce is True while a Freeze is in force. Its reasons are the same as for Ready.
const ConditionInForce = "InForce"

// Reasons of events about a Freeze.
const (
	// EventFreezeBegan is recorded when the freeze begins.
	EventFreezeBegan = "FreezeBegan"
	// EventFreezeEnded is recorded when the freeze ends, by itself, by an edit, or because
	// it was deleted.
	EventFreezeEnded = "FreezeEnded"
)
