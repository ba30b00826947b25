// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault decides which requests to an API server, and which events of
// its watches, something goes wrong with, and what. It is the pure half of the
// fault proxy: no connection, no clock, no log.
//
//	rule.go      what a rule says
//	kinds.go     the faults there are, and what each can be done to
//	scenario.go  rules as they are written in a file, and what is wrong with them
//	match.go     whether a rule means a request or an event
//	book.go      the rules in force, and what each has counted
package fault
