// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command suites runs the tests. It defines every suite, builds the programs that the suites need,
// runs several suites at the same time and shows their progress. It ends with a summary: the failed
// tests, the skipped tests with the reason, and the ten slowest tests.
//
//	suites run fast             the suites of make test
//	suites run all              the suites of make test-all
//	suites run --run='^TestX$' e2e
//	suites flakes --rounds=20   the suites repeatedly while all processors are busy, as in make flakes
//	suites busy --busy=8 COMMAND  any command while other processes are busy
//	suites list
//
// The files:
//
//	table.go      all suites, with their folders, packages, environment and make targets
//	command.go    the command line
//	runner.go     runs several suites at the same time, each after its make targets are built, and ends in time
//	queue.go      chooses the suite that runs next
//	admission.go  lets another suite begin only while processors are idle
//	turns.go      lets parts of suites ask for that, too: shards, tests with a sandbox of their own
//	events.go     reads the output of go test -json
//	progress.go   the progress line
//	summary.go    the summary of a run: failures, skipped tests, the slowest tests
//	flakes.go     runs suites repeatedly on a busy machine
//	sittings.go   sums the results of several runs of make flakes, as a table
//	record.go     the results with a Kubernetes release, for docs/reference/kubernetes.md
package main
