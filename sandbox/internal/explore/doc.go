// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explore searches for faults that an operator does not recover from. It first plays a
// workload without faults, the baseline runs, and learns which requests the operator sends and
// which state each step ends in. Then it plays the workload once for each fault, always from
// the same state of the cluster, and compares.
//
//	workload/    the steps that users perform
//	observe/     the record of a run: versions of objects, and requests
//	baseline/    the behavior of an operator in runs without a fault
//	faults/      the table of faults, and the plan of the faults to play
//	operator/    the process of the operator
//	lab/         the sandboxes of runs
//	settle/      detects when the cluster is quiet
//	inject/      injects a fault
//	testbed/     an operator in a sandbox, with all of the above
//	judge/       finds the problems of a run
//	explore.go   learns the baseline, plays faults
//	finding.go   a finding, and the file that replays it
//	learn.go     plays the baseline runs
//	queue.go     plays faults side by side, and confirms findings
//	report.go    reports, by package results, which also keeps the played faults
//	rest.go      waits in a run until the cluster is quiet
//	run.go       one run
//	shrink.go    leaves out steps that a finding does not need
//	steps.go     waits of a step, and its errors
//	user.go      performs the steps of users
package explore
