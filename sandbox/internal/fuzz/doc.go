// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzz edits a custom resource in every way that its schema suggests, while its
// operator runs, and checks the state that the operator ends in. Package edits decides which
// edits there are; the sandbox, the operator and the faults are of the packages of explore.
//
//	input.go     the sample, and its CustomResourceDefinition
//	fuzz.go      plays all edits, or a finding again
//	learn.go     the baseline, learned from a sample without an edit
//	queue.go     the next trial, and its world; confirms findings
//	world.go     a testbed with the operator and the sample in it
//	trial.go     a trial: edits, or an edit with a fault
//	play.go      plays edits, and finds problems
//	edit.go      makes and reverts an edit
//	object.go    the edited object in a cluster
//	process.go   the process of the operator, and its failures
//	record.go    the record of objects and requests since the last mark
//	settle.go    waits until the cluster is quiet and in the expected state
//	compare.go   the differences between two states
//	finding.go   a finding, and the file that replays it
//	report.go    reports, by package results, which also keeps the played trials
package fuzz
