// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator runs the operator under test as a child process.
//
//	operator.go   the operator's process, which is restarted after each exit
//	output.go     the last lines of output, and the failures found in it
//	panics.go     the origin of a panic
//	networks.go   the network namespaces of the processes
package operator
