// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzz edits a custom resource in every way that its schema suggests, while its
// operator runs, and looks whether the operator comes to where it should. Which edits
// there are is decided by package edits; the sandbox and the operator's process belong to the packages
// of package explore.
//
//	input.go     the sample, and the definition that it is of
//	fuzz.go      learns, plays, confirms
//	queue.go     the next trial, and its sandbox
//	world.go     a sandbox with the operator and the sample in it
//	settle.go    when all is at rest, and as it should be
//	trial.go     a trial: edits, or an edit with a fault
//	play.go      plays edits, and finds problems
//	busy.go      makes an edit while the operator is busy with a new object
//	compare.go   the differences between two states
//	finding.go   a finding, and the file that replays it
//	report.go    reports, by package results, which also keeps the played trials
package fuzz
