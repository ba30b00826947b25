// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults has the table of the faults that explore and fuzz play, and plans which to
// play.
//
//	fault.go      a fault of a run: its kind, and where it is injected
//	plan.go       the faults for an operator, each with a score
//	order.go      the next fault to play, given the faults played so far
//	table.go      an entry for each kind of fault: effect, cause, rule, action, score, consequences
//	markdown.go   the table as a part of the documentation
package faults
