// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodepool implements NodePools: it applies the settings of each pool to its member
// nodes, and reports the utilization of the pool.
//
// Decisions are made in packages without a client, clock, logger or metrics:
//
//	setting/    the table of the kinds of settings that a pool puts on nodes
//	ownership/  the record on a node of which pool has put which setting there
//	plan/       the patch of a node, the nodes that may be emptied next, and the action for
//	            a pool's RuntimeClass
//	state/      model of all pools, nodes and pods, fed by informers; load/ has the
//	            requests of the pods on each node, room/ the room for new pods
//	preview/    effects of a change of pools, for the kubectl plugin
//
// This package gathers their input and carries the decisions out:
//
//	node_controller.go  patches nodes
//	pool_controller.go  reconciles a pool's finalizer, RuntimeClass, evictions, status and events
//	watch.go            feeds the model from the informers, and queues dirty nodes and pools
//	headroom.go         evaluates the headroom of pools, outside the reconciles
//	status.go           a pool's status and conditions, and when to write them
//	metrics.go          the metrics
//	options.go, definition.go, setup.go
//	                    declare the controllers to the manager
//
// test/convergence tests the packages that decide, together; test/objects builds objects for
// tests.
package nodepool
