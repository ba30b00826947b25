// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package results stores a tool's completed cases and its findings in a directory. An interrupted
// run can then be continued, and the directories of several machines can be merged into a single
// report. The package does not depend on the content of cases: faults for explore, edits for fuzz.
//
//	tool.go      opens and merges the results of a tool: explore or fuzz
//	plan.go      the selection of cases to run
//	store.go     reads a tool's results directories
//	book.go      writes the completed cases and the findings of a run
//	finding.go   the common part of all findings, and their files
//	about.go     the inputs of the results in a directory: operator, input files, hashes
//	merge.go     the division of the cases among several machines
//	lock.go      locks a directory against other runs
//	again.go     sets aside findings from earlier versions of the inputs
//	result.go    the cases and findings, in groups with the same cause
//	report.go    reports: text, HTML
//	scope.go     the objects and fields by which cases were judged
//	summary.go   what a result proves, as text and as JSON
//	junit.go     a report for CI
package results
