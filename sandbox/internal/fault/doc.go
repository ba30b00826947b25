// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault decides which fault is injected into which requests to an API server, and into
// which events of its watches. It is the pure half of the fault proxy: no connection, no clock, no
// log.
//
//	rule.go      the fields of a rule
//	kinds.go     all faults, and the targets of each
//	scenario.go  reads rules from a file
//	validate.go  the mistakes of a rule
//	match.go     whether a rule applies to a request or an event
//	ruleset.go   the rules in force, and their counters
package fault
