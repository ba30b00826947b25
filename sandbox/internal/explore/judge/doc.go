// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge finds the problems of a run.
//
//	check.go        compares a run with undisturbed runs
//	verdict.go      the record of a run, with its problems
//	invariants.go   rules that hold at every moment
//	history.go      differences that a fault explains by hiding states
//	copies.go       differences that follow from the annotation of the kit
//	strangers.go    clients without a part in the run
package judge
