// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explore searches for faults from which an operator does not recover. First it runs a
// workload without faults (the baseline runs), to learn the operator's requests and the cluster
// state at the end of each step. Then it runs the workload once for each fault, always starting
// from the same cluster state, and compares the results with the baseline.
//
//	workload/    the steps that users perform
//	observe/     the record of a run: versions of objects, and requests
//	baseline/    the behavior of an operator in runs without a fault
//	faults/      the table of faults, and the plan of the faults to inject
//	operator/    the operator's process
//	application/ what answers the operator's connections to pods and Services
//	lab/         the sandboxes of runs
//	settle/      detects when the cluster is quiet
//	inject/      injects a fault
//	testbed/     an operator in a sandbox, with all of the above
//	judge/       detects the problems of a run
//	explore.go   learns the baseline, then injects faults
//	control.go   plays without a fault once more, before numbers of objects count
//	dryrun.go    describes what the baseline runs have shown, and the plan of faults
//	finding.go   a finding, and the file that replays it
//	learn.go     executes the baseline runs
//	queue.go     injects faults in parallel, and confirms findings
//	report.go    the reports, by package results, which also stores the outcome of each fault
//	rest.go      waits until the cluster is quiet
//	run.go       a single run of the workload
//	shrink.go    removes steps that a finding does not need
//	steps.go     the waits and errors of steps
//	survived.go  the timelines of faults that the operator survives
//	user.go      performs the users' steps
package explore
