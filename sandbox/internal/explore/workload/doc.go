// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload reads the steps that users perform while an operator runs.
//
//	workload.go   steps, invariants and their checks
//	read.go       reads a workload file, for explore or for fuzz
//	application.go what answers for pods, and the commands of a workload
//	include.go    files included by several workloads
//	draft.go      a first workload, from a sample object
package workload
