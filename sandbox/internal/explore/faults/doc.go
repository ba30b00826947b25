// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults defines the faults that explore and fuzz inject, and plans the faults for an
// operator.
//
//	fault.go      a fault: its kind, and the point of a run at which it is injected
//	plan.go       the faults for an operator, each with a score
//	order.go      the next fault to inject, given the faults injected so far
//	table.go      an entry for each kind of fault: effect, cause, rule, action, score, consequences
//	actors.go     the actions of faults that follow a rule
//	proof.go      whether a fault took effect, from the record of a run
//	markdown.go   the tables of faults in the documentation
package faults
