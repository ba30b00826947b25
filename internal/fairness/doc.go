// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairness divides what all namespaces share in the manager: the time of the workers, and
// the requests to the API server that users of a namespace can cause. No namespace can use more
// than its share while others wait, however many objects it has and however often these change
// or fail, and a share that was used up is given back by the clock alone.
//
// A controller of namespaced objects is built by [Complete], and needs nothing else: the requests
// of a reconcile are charged to its namespace by the context that the reconcile was given,
// whichever client sends them.
//
//	turns.go       the order in which namespaces get workers: pure
//	queue.go       the queue of a controller, in that order
//	account.go     what a namespace has used, and when it may use more: pure
//	shares.go      the accounts of all namespaces
//	requests.go    charges the requests of reconciles, and events
//	controller.go  builds controllers
//	metrics.go     the metrics: which namespaces use how much
package fairness
