// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inject injects a fault into a run.
//
//	inject.go    adds the fault's proxy rule, and acts when the rule has fired
//	run.go       the fault of a workload run
//	actions.go   the actions of faults: other clients, other processes, the control plane
//	ask.go       the actions of faults that hit requests to applications
//	stale.go     restarts the operator with outdated lists
//	rules.go     the proxy's rules
//	rival.go     another client that annotates objects
//	leases.go    the leader's leases
package inject
