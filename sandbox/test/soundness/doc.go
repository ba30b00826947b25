// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soundness measures what a verdict of explore and fuzz is worth: pairs of small operators,
// of which one makes a known mistake and the other does the same without it. A mistake must be found,
// by what it breaks, and its twin must survive the same faults without an alarm.
//
//	soundness.go  what a pair is, and how it is played and judged
//	table.go      the table of what came of it
//	pairs.go      all pairs, and the workloads and objects that they have in common
//	writes.go     pairs about writes that fail, or after which the process is killed
//	caches.go     pairs about events that are late or never come
//	owners.go     pairs about what belongs to whom, and about deletions
//	kinds.go      pairs about other kinds of objects, the status, and operators that never quite rest
//	edits.go      pairs about what users write into a spec, which fuzz plays
//
// The operators are in the folder operators, and internal/tools/soundness plays all.
package soundness
