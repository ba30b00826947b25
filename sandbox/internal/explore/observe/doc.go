// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe records all object versions in a run, and all requests of the operator.
//
//	recorder.go    the versions of all objects
//	gaps.go        the revisions in which versions may be missing
//	requests.go    the operator's requests, from the proxy's log
//	resources.go   the resources of an API server
//	outcome.go     the record of a run, by step
//	patience.go    whether rejected writes are retried with a growing back-off
//	notes.go       explore's own actions
//	processes.go   the starts and ends of processes
//	state.go       the state of all objects, without fields that differ between otherwise equal runs
//	latest.go      the state, computed only after a change
//	leftovers.go   the objects that controllers create for the previous run
//	census.go      counts of judged objects and fields
//	owners.go      the field managers of an object
//	locks.go       the objects used for leader election
//	habits.go      changes that recur in an otherwise quiet cluster
//	restless.go    changes that prevent a cluster from becoming quiet
//	advice.go      advice on flags that make a cluster count as quiet
package observe
