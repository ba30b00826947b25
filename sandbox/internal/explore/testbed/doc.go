// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testbed runs an operator in a sandbox behind a proxy that injects faults, and records
// objects and requests. Explore and fuzz use testbeds.
//
//	maker.go     creates the testbeds of an operator
//	testbed.go   an operator in a sandbox
package testbed
