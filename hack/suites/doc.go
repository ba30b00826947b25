// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command suites runs the tests: it knows every suite, builds what a suite needs, runs
// several side by side, shows how far they are, and ends with what failed, what was skipped
// and why, and the ten slowest tests.
//
//	suites run fast             what make test runs
//	suites run all              what make test-all runs
//	suites run --run='^TestX$' e2e
//	suites flakes --rounds=20   what make flakes runs: the suites while all processors are busy
//	suites busy --busy=8 COMMAND  any command beside busy processes
//	suites list
//
// The files:
//
//	table.go      the suites: folder, packages, environment, the make targets that they need
//	command.go    the command line
//	runner.go     runs suites side by side, each when what it needs is built
//	queue.go      which suite is next
//	events.go     reads what go test -json prints
//	progress.go   how far the tests are, as a line
//	summary.go    the end of a run: failures, skips, the slowest tests
//	flakes.go     rounds on a busy machine
//	sittings.go   adds up the rounds of several runs of make flakes, as a table
//	record.go     the result of a release of Kubernetes, for docs/reference/kubernetes.md
package main
