// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state reduces the objects of a cluster to the fields that two equal runs have in common,
// and compares two such states, except for masked fields.
//
//	fields.go   the fields of an object as flat paths, without times, UIDs and addresses
//	match.go    pairs the objects of two groups with generated names
//	compare.go  the differences of a state from the expected state
//	mask.go     objects and fields that are not compared, with the reasons
package state
