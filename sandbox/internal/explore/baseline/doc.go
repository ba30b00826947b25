// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package baseline learns the normal behavior of an operator from runs without a fault.
//
//	baseline.go   the baseline, learned from two runs
//	differ.go     differences between baseline runs
//	counts.go     the numbers of created and deleted objects
//	interest.go   scores resources as targets of faults
//	scope.go      the objects and fields that are compared in runs with faults
package baseline
