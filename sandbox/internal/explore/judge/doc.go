// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge finds the problems of a run.
//
//	check.go        compares a run with the baseline
//	steps.go        the verdict on a step, and on a second run
//	busy.go         hot loops: requests in a cluster that is at rest
//	verdict.go      the record of a run, with its problems
//	invariants.go   rules that must hold for each version
//	history.go      differences explained by intermediate states that a fault hides
//	copies.go       differences that follow from the annotation that explore writes
//	timeline.go     the events of a run, in order of time
//	strangers.go    detects other clients, which would spoil the verdict
package judge
