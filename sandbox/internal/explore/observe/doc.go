// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe records a run: each version of each object, and each request of the operator.
//
//	recorder.go    the versions of all objects
//	requests.go    the requests of the operator, from the log of the proxy
//	resources.go   the resources of an API server
//	outcome.go     the record of a run, step by step
//	patience.go    whether refused writes are retried with a growing back-off
//	notes.go       the actions of explore itself
//	state.go       the state of all objects, without fields that differ between equal runs
//	census.go      counts of judged objects and fields
//	owners.go      the field managers of an object
//	locks.go       the objects by which an operator elects its leader
//	habits.go      changes that recur in a cluster that is otherwise quiet
//	restless.go    changes that keep a cluster from becoming quiet
//	advice.go      flags that let a cluster count as quiet
package observe
