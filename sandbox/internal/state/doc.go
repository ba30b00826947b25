// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state describes the objects of a cluster by what two equal runs have in common, and
// says in what two such descriptions differ, but for what is masked.
//
//	fields.go   the fields of an object as flat paths, without times, UIDs and addresses
//	match.go    which objects of two groups without names of their own belong together
//	compare.go  in what a state differs from the one that it should be
//	mask.go     what differs without a reason, and why it does not count
package state
