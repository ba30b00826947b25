// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

// Severity is the degree of attention that a status requires.
type Severity string

// Severities. A status with Neutral is neither good nor bad.
const (
	Neutral Severity = ""
	Good    Severity = "Good"
	Warning Severity = "Warning"
	Bad     Severity = "Bad"
)

// Status is the state of an object in a word and a sentence.
type Status struct {
	Reason   string   `json:"reason"`
	Severity Severity `json:"severity,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// Unknown is the reason shown for an object that no manager has reconciled.
const Unknown = "Unknown"

// notReconciled is the status of an object that no manager has reconciled.
var notReconciled = Status{Reason: Unknown, Severity: Warning, Message: "no manager has looked at it yet"}
