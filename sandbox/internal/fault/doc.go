// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault decides which fault is injected into which requests to an API
// server, and into which events of its watches. It is the pure half of the fault
// proxy: no connection, no clock, no log.
//
//	rule.go      the fields of a rule
//	kinds.go     all faults, and what each can be injected into
//	scenario.go  reads rules from a file
//	validate.go  what is wrong with a rule
//	match.go     whether a rule applies to a request or an event
//	ruleset.go   the rules in force, and what each has counted
package fault
