// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzz edits a custom resource in every way that its schema suggests, while its
// operator runs, and looks whether the operator comes to where it should. Which edits
// there are is decided by package edits; the sandbox and the operator's process are those
// of package explore.
//
//	input.go     the sample, and the definition that it is of
//	fuzz.go      learns, plays, confirms
//	queue.go     what is played next, and where
//	world.go     a sandbox with the operator and the sample in it
//	settle.go    when all is at rest, and as it should be
//	trial.go     what is played: edits, or one with a fault
//	play.go      plays edits, and says what is wrong
//	busy.go      makes an edit while the operator is busy with a new object
//	compare.go   what differs between two states, without what does not count
//	finding.go   what is found, and the file that replays it
//	report.go    says it, by package results, which also keeps what was played
package fuzz
