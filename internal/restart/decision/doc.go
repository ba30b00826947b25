// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision makes decisions about ScheduledRestarts: from an [Input], the function [Decide]
// computes the next status, the tick to send, and the time of the next decision. The package uses
// no client, clock or logger.
//
//	decision.go        the input and the output of a decision
//	decide.go          runs the steps of a decision
//	state.go           the state that triggers and steps share
//
// A gate is a condition that must hold before a restart starts:
//
//	gate.go            gates and their blockers
//	describe.go        describes the gates to users
//	schedule_gate.go   the schedule runs
//	orphan.go          the workload whose opt-in created the ScheduledRestart exists
//	target.go          the workload exists, and a restart replaces its pods
//	freeze.go          no freeze is in force
//	window.go          a window is open
//	order.go           the predecessors (spec.after) have finished
//	health.go          the workload is healthy enough to be restarted
//	query.go           no Prometheus query of the administrator returns results
//	progress_gate.go   no restart is in progress
//	budget.go          a slot of the budget is free
//
// A trigger is a reason for restarts:
//
//	trigger.go         the interface of triggers, and due ticks
//	schedule.go        the schedule
//	request.go         restarts that an annotation requests
//	age.go             pods that are too old
//	change.go          changed ConfigMaps or Secrets
//	storm.go           the interval between restarts for changes, and content that keeps changing
//
// The following files implement the steps of a decision:
//
//	spec.go            edits of the spec
//	start.go           chooses the tick for which a restart starts
//	launch.go          claims the tick and starts the restart
//	early_claim.go     ticks that are claimed before they are due
//	sending.go         the tick to send to the target
//	spread.go          the delay between a tick and the start of its restart
//	active.go          writes status.active, the restart in progress
//	progress.go        follows the restart in progress
//	rollout.go         follows a rollout
//	evict.go           follows a restart by eviction
//	resend.go          a tick that was claimed but not sent
//	ending.go          ends a restart, and counts consecutive failures
//	marks.go           restarts of a workload according to its annotations
//	podstartup.go      summarizes the startup times of new pods
//	missed.go          missed ticks, and how often they are recorded
//	history.go         the history of ticks in the status
//	event.go           the event for a decided tick
//	overdue.go         computes when a schedule becomes overdue
//	conditions.go      the conditions of the status
//
// The tests simulate thousands of days with random failures and edits (simulation_test.go).
package decision
