// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testbed runs an operator in a sandbox, behind a proxy that injects faults, and records
// the objects and the requests. Explore and fuzz play in testbeds.
//
//	maker.go     the sandboxes of an operator
//	testbed.go   an operator in a sandbox
package testbed
