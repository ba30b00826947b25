// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inject injects a fault into a run.
//
//	inject.go    arms the rule of the fault, and acts when it has fired
//	actions.go   the actions of faults: other clients, other processes, the control plane
//	stale.go     starts on lists from an earlier moment
//	rules.go     the rules of the proxy
//	rival.go     another client that writes
//	leases.go    the leases of a leader
package inject
