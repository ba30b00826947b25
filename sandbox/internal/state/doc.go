// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state reduces the objects of a cluster to the fields that are the same in two equal runs
// of an operator, and compares two states that were reduced in this way. It does not compare masked
// fields.
//
//	fields.go   flattens objects to paths and values, without times, UIDs and addresses
//	match.go    pairs expected with actual objects that have generated names
//	compare.go  the differences between the actual and the expected state
//	mask.go     objects and fields that are not compared, and why
package state
