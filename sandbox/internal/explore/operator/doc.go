// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator runs the process under test.
//
//	operator.go   the process, which is restarted when it exits
//	output.go     the last lines of its output, and failures in it
//	panics.go     the origin of a panic
//	networks.go   the networks of its processes
package operator
