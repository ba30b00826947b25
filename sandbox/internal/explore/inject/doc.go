// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inject injects a fault into a run.
//
//	inject.go    adds the proxy rule of the fault, and acts when the rule has fired
//	run.go       the fault of a run of a workload
//	actions.go   the actions of faults: other clients, other processes, the control plane
//	stale.go     restarts the operator with lists from an earlier time
//	rules.go     the rules of the proxy
//	rival.go     another client that writes
//	leases.go    the leases of a leader
package inject
