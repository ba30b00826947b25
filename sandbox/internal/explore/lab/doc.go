// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab provides the sandboxes in which runs are played. All runs begin in the same
// state.
//
//	lab.go        sandboxes, restored to a snapshot
//	labs.go       the sandboxes of several explorers
//	setup.go      the state in which runs begin
//	place.go      the kubeconfig, Pod and network of an operator in a sandbox
//	install.go    installs manifests
//	rights.go     the ServiceAccount of the operator
//	pod.go        the Pod of the operator, and its webhooks
//	programs.go   programs beside the operator
//	scratch.go    the directory of running sandboxes
package lab
