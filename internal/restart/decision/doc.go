// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides what to do about a ScheduledRestart: [Decide] computes its
// next status, the tick to send, and when to decide again, from nothing but its
// [Input]. It has no client, clock or logger.
//
//	decision.go     what a decision depends on, and what it consists of
//	spec.go         edits of the spec, and the next tick
//	start.go        which tick is due, and whether to start a restart for it
//	claim.go        a tick that is claimed, perhaps before it is due
//	history.go      what is recorded of ticks
//	missed.go       ticks that are not started, and how often that is reported
//	active.go       the restart in progress
//	request.go      restarts that an annotation requests
//	freeze.go       the freezes during which none is started
//	change.go       the trigger Change: other content of ConfigMaps or Secrets than the pods were started with
//	storm.go        changes that keep coming
//	age.go          pods that are too old
//	evict.go        restarts that evict pods
//	order.go        those that come first
//	window.go       the times at which restarts may be started
//	query.go        the queries of the manager's operator
//	gates.go        what must allow a restart, each by itself
//	blocker.go      what keeps a workload from being restarted
//	orphan.go       ScheduledRestarts whose opt-in is gone with its workload
//	marks.go        which restarts a workload has had
//	conditions.go   the conditions
//	podstartup.go   how long the new pods took to become ready
//	spread.go       how long after its tick a restart starts
//	overdue.go      when a schedule is overdue
//	event.go        the event about a tick
//
// The tests run Decide through thousands of bad days (simulation_test.go).
package decision
