// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides about the nodes of a NodeMaintenance: which drains begin, and what is
// done to each node next. It uses no client, clock or logger.
//
// The beginning of a drain is recorded in the status before the node is patched. Each action can be
// repeated, and is decided again from the status and the node until the node shows its effect. A
// crash between two writes therefore does not change the outcome.
//
//	input.go       the facts that a decision depends on, and its result
//	decide.go      the steps of a decision
//	state.go       the state that the steps share
//	round.go       begins rounds, and counts their nodes
//	phase.go       the phases of a node whose drain has begun
//	start.go       begins drains within the limits
//	due.go         marks the nodes that are still to be drained
//	conditions.go  the conditions of the status
package decision
