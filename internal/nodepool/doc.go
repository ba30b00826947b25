// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodepool keeps NodePools: it puts the settings of each pool on its member nodes,
// and reports how much of their resources is requested.
//
// Decisions are made in packages that have no client, clock, logger or metrics:
//
//	setting/    the kinds of settings that a pool puts on nodes, in one table
//	ownership/  the record on a node of which pool has put which setting there
//	plan/       what to write to a node, which nodes may be emptied next, and what to do
//	            with a pool's RuntimeClass
//	resources/  sums of what nodes have and pods request
//	state/      all pools, nodes and pods as one model that informers feed; load/ has the
//	            requests of the pods on each node, room/ the room for new pods
//	preview/    what a change of pools would do, for the kubectl plugin
//
// This package carries them out:
//
//	node_controller.go  patches one node
//	pool_controller.go  reconciles one pool's finalizer, RuntimeClass, evictions, status and events
//	watch.go            feeds the model from the informers, and queues dirty nodes and pools
//	headroom.go         whether a pool has the headroom that it asks for, beside the reconciles
//	status.go           a pool's status and conditions, and when to write them
//	metrics.go          the metrics
//	options.go, definition.go, setup.go
//	                    what the manager needs to know about the controllers
//
// test/convergence tests the packages that decide, together; test/objects builds objects for
// tests.
package nodepool
