// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides about a ScheduledRestart: [Decide] computes its
// next status, the tick to send, and when to decide again, from nothing but its
// [Input]. It has no client, clock or logger.
//
//	decision.go        the input and the output of a decision
//	decide.go          the steps of a decision, and the parts that take them
//	state.go           the state that triggers and steps share
//
// A gate is a condition that must hold before a restart is started:
//
//	gate.go            gates and their blockers
//	describe.go        the gates as people see them
//	schedule_gate.go   the schedule runs
//	orphan.go          the workload of its opt-in exists
//	target.go          the workload exists, and a restart replaces its pods
//	freeze.go          no freeze is in force
//	window.go          a window is open
//	order.go           the ScheduledRestarts that come first have finished
//	health.go          the workload is in a state to be restarted
//	query.go           no query of the manager's operator has a result
//	progress_gate.go   no restart is in progress
//	budget.go          a slot of the budget is free
//
// A trigger is a reason for restarts:
//
//	trigger.go         triggers, and their ticks that are due
//	schedule.go        the schedule
//	request.go         restarts that an annotation requests
//	age.go             pods that are too old
//	change.go          content of ConfigMaps or Secrets that the pods were not started with
//	storm.go           the interval between restarts for changes, and changes that keep coming
//
// The steps of a decision:
//
//	spec.go            edits of the spec
//	start.go           which tick a restart is started for
//	launch.go          the start of a restart: its tick is claimed
//	early_claim.go     ticks that are claimed before they are due
//	sending.go         the tick that is sent
//	spread.go          how long after its tick a restart starts
//	active.go          the restart in progress in the status, and its transitions
//	progress.go        how the restart in progress is followed
//	rollout.go         its rollout
//	evict.go           its evictions
//	resend.go          a tick that was claimed and not sent
//	ending.go          the end of a restart, and failures in a row
//	marks.go           the restarts of a workload according to its annotations
//	podstartup.go      how long the new pods took to become ready
//	missed.go          ticks that are not started, and how often that is reported
//	history.go         the records of ticks
//	event.go           the event about a tick
//	overdue.go         when a schedule is overdue
//	conditions.go      the conditions
//
// The tests run Decide through thousands of bad days (simulation_test.go).
package decision
