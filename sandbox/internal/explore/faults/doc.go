// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults has the table of the faults that explore and fuzz play, and plans them.
//
//	fault.go      a fault of a run: its kind, and the place where it is injected
//	plan.go       the faults for an operator, with how promising each is
//	order.go      the next fault, after all that were played
//	table.go      an entry for each fault: effect, cause, rule, action, score, consequences
//	markdown.go   the table as a part of the documentation
package faults
