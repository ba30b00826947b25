// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explore looks for the faults that an operator does not survive. It plays a
// workload undisturbed, and learns what the operator reads and writes and where that ends.
// Then it plays the workload again and again, each time from the same state with one fault.
//
//	workload/    the steps that users do
//	observe/     the record of a run: versions and requests
//	baseline/    the behaviour of an operator that nothing disturbs
//	faults/      the table of faults, and which of them to play
//	operator/    the process of the operator
//	lab/         the sandboxes of runs
//	settle/      when all is at rest
//	inject/      injects a fault
//	judge/       finds the problems of a run
//	words/       lines for people
//	disturb.go   the faults of writes in a session
//	explore.go   learns, plays
//	finding.go   a finding, and the file that replays it
//	learn.go     plays undisturbed runs
//	queue.go     plays faults side by side, and confirms findings
//	report.go    reports, by package results, which also keeps the played faults
//	rest.go      waits in a run until all is at rest
//	run.go       one run
//	session.go   the same sandbox and operator, for tools that play something else
//	shrink.go    leaves out steps that a finding does not need
//	steps.go     waits of a step, and its errors
//	user.go      performs the steps of users
package explore
