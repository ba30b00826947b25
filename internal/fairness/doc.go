// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairness divides two resources of the manager among namespaces: the time of its
// workers, and the requests to the API server that users of a namespace can cause. No namespace
// can use more than its share while others wait, however many objects it has and however often
// these change or fail. Used requests come back with time alone.
//
// A controller of namespaced objects is built with [Complete], and needs nothing else: the
// requests of a reconcile are charged to its namespace by way of the reconcile's context,
// whichever client sends them.
//
//	turns.go       the order in which namespaces get workers: pure
//	queue.go       the queue of a controller, in that order
//	account.go     the use and the limits of a namespace: pure
//	shares.go      the accounts of all namespaces
//	requests.go    charges requests of reconciles, and events
//	controller.go  builds controllers
//	metrics.go     the metrics of use by namespace
package fairness
