// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload reads the steps that users do while an operator runs.
//
//	workload.go   steps, invariants and their checks
//	include.go    files that workloads have in common
package workload
