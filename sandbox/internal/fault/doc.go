// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault decides which fault to inject into an API server request or into a watch event. It
// contains only the fault proxy's logic, without connections, clocks and logs.
//
//	rule.go      the fields of a rule
//	kinds.go     all kinds of faults, with the targets of each
//	scenario.go  reads rules from a file
//	validate.go  detects mistakes in a rule
//	match.go     matches rules with requests and events
//	ruleset.go   the active rules, and their counters
package fault
