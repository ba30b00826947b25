// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzz edits a custom resource in every way that its schema suggests, while its
// operator runs, and checks the state that the operator ends in. Package edits decides which
// edits there are; the sandbox and the process of the operator belong to the packages of
// package explore.
//
//	input.go     the sample, and its CustomResourceDefinition
//	fuzz.go      learns the baseline, plays edits
//	queue.go     the next trial, and its sandbox; confirms findings
//	world.go     a sandbox with the operator and the sample in it
//	settle.go    waits until the cluster is quiet and in the expected state
//	trial.go     a trial: edits, or an edit with a fault
//	play.go      plays edits, and finds problems
//	busy.go      makes an edit while the operator is busy with a new object
//	compare.go   the differences between two states
//	finding.go   a finding, and the file that replays it
//	report.go    reports, by package results, which also keeps the played trials
package fuzz
