// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzz edits a custom resource in every way that the custom resource's schema suggests,
// while an operator runs, and checks the resulting cluster state. Package edits derives the edits.
// Packages below explore provide the sandboxes, the operator's process and the faults.
//
//	input.go     the sample (the custom resource to edit), and its CustomResourceDefinition
//	fuzz.go      tests all edits, or replays a finding
//	learn.go     the baseline: the operator's behavior with the unedited sample
//	queue.go     selects and runs the next trial, and confirms findings
//	world.go     a testbed in which the operator runs and the sample exists
//	trial.go     a trial: an edit, a sequence of edits, or an edit with a fault
//	play.go      applies edits, and detects problems
//	edit.go      makes and reverts an edit
//	object.go    the edited object in the cluster
//	process.go   the operator's process, and its failures
//	record.go    records the objects and requests during a trial
//	settle.go    waits until nothing changes and the cluster is in the expected state
//	compare.go   the differences between two cluster states
//	finding.go   a finding, and the file that replays it
//	report.go    the reports, by package results, which also stores the outcome of each trial
package fuzz
