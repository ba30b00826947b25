// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairness divides two resources of the manager among namespaces: the time of its workers,
// and the API requests that users of a namespace can cause. While other namespaces wait, no
// namespace can use more than its share, regardless of the number of its objects, their changes and
// their failures. A namespace can send a limited number of API requests per second.
//
// A controller of namespaced objects only needs to be built with [Complete]: API requests are
// charged to the namespace in the reconcile's context, regardless of the client that sends them.
//
//	turns.go       the order in which namespaces get workers; no clock or goroutines
//	queue.go       the controller's work queue, in that order
//	account.go     the resource use and the limits of a namespace; no clock or goroutines
//	shares.go      the accounts of all namespaces
//	requests.go    charges API requests and events to namespaces
//	controller.go  builds controllers
//	metrics.go     the metrics of resource use by namespace
//	objects.go     counts the cached objects of each namespace, since their number is not limited
package fairness
