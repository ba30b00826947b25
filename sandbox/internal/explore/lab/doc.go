// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab provides the sandboxes for runs. All runs begin with the same cluster state.
//
//	lab.go        sandboxes that are restored to a snapshot after each run
//	labs.go       the sandboxes of several explorers
//	setup.go      the initial state of runs
//	place.go      the kubeconfig, Pod and network of an operator in a sandbox
//	install.go    installs manifests
//	rights.go     the operator's ServiceAccount
//	pod.go        the operator's Pod, and its webhooks
//	programs.go   programs that run in parallel with the operator
//	scratch.go    the temporary directory of running sandboxes
package lab
