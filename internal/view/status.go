// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

// Severity is the degree of attention that a status needs.
type Severity string

// Severities of a status. Neutral is neither good nor bad.
const (
	Neutral Severity = ""
	Good    Severity = "Good"
	Warning Severity = "Warning"
	Bad     Severity = "Bad"
)

// Status is an object's state, as a one-word reason and a message.
type Status struct {
	Reason   string   `json:"reason"`
	Severity Severity `json:"severity,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// Unknown is the reason in the status of an object that no manager has reconciled yet.
const Unknown = "Unknown"

// notReconciled is the status of an object that no manager has reconciled yet.
var notReconciled = Status{Reason: Unknown, Severity: Warning, Message: "no manager has looked at it yet"}
