// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soundness measures the reliability of explore's and fuzz's verdicts with pairs of small
// operators. One operator of each pair has a known bug; the other operator, its twin, behaves the
// same without the bug. The bug must be found with the expected symptom, and the twin must survive
// the same faults without a finding.
//
//	soundness.go  pairs, and how they are run and judged
//	table.go      the table of results
//	pairs.go      all pairs, and the workloads and objects that they share
//	writes.go     pairs about failed writes, and processes that are killed after a write
//	caches.go     pairs about delayed and missing watch events
//	owners.go     pairs about ownership and deletions
//	kinds.go      pairs about other kinds of objects, the status, and operators that never rest
//	edits.go      pairs about edits of a spec, run with fuzz
//
// The operators are in the folder operators. The command internal/tools/soundness runs all pairs.
package soundness
