// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge detects the problems of a run.
//
//	check.go        compares a run with the baseline
//	steps.go        the verdict on a step, and on a second run
//	busy.go         hot loops: continuous requests in a quiet cluster
//	verdict.go      the record of a run, with its problems
//	invariants.go   conditions that every object version must satisfy
//	history.go      differences explained by intermediate states that a fault hides
//	copies.go       differences caused by an operator that copies TouchedAnnotation
//	timeline.go     the events of a run, sorted by time
//	strangers.go    detects other clients, whose writes would invalidate the verdict
package judge
