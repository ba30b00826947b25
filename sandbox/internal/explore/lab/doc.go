// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab has sandboxes for runs, all of which begin in the same state.
//
//	lab.go        sandboxes, put back to a snapshot
//	labs.go       the sandboxes of several explorers
//	setup.go      the state in which runs begin
//	place.go      the surroundings of an operator in a sandbox
//	install.go    installs manifests
//	rights.go     the ServiceAccount of the operator
//	pod.go        the Pod of the operator, and its webhooks
//	programs.go   programs beside the operator
//	scratch.go    the directory of sandboxes that run
package lab
