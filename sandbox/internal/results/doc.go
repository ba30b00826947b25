// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package results writes the played cases and the findings of a tool to a directory, so that an
// interrupted run continues and the directories of several machines become a single report. It does
// not know the content of a case.
//
//	tool.go      the tools, explore and fuzz: opens and merges their results
//	plan.go      the choice of cases to play
//	store.go     reads the directories of a tool
//	book.go      writes the played cases and the findings of a run
//	finding.go   the part that all findings have, and their files
//	about.go     the identity of the results of a directory: operator, inputs, hashes
//	merge.go     the parts of the cases for several machines
//	lock.go      keeps other runs out of a directory
//	again.go     sets results of other contents aside
//	result.go    the cases and findings, in groups with the same cause
//	report.go    reports: text, HTML
//	scope.go     the objects and fields by which cases were judged
//	summary.go   the evidence of a result, in words and for programs
//	junit.go     a report for CI
package results
