// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package baseline learns the normal behavior of an operator from runs without a fault.
//
//	baseline.go   the baseline, learned from two runs
//	differ.go     fields in which baseline runs differ
//	counts.go     the numbers of created and deleted objects
//	interest.go   scores a resource as a target of faults
//	scope.go      the objects and fields that runs with faults are compared by
package baseline
