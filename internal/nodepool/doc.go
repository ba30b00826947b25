// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodepool implements NodePools. It applies each pool's settings (labels, annotations and
// taints) to its member nodes, and reports the pool's utilization.
//
// Decisions are made in packages without a client, clock, logger or metrics:
//
//	setting/    the kinds of settings that a pool applies to nodes
//	ownership/  the node annotation that records which pool applied each setting
//	plan/       the changes to a node's settings, the nodes that may get a NoExecute taint
//	            next, and the action (such as Create) for a pool's RuntimeClass
//	state/      the in-memory model of all pools, nodes and pods, updated by informers;
//	            load/ sums up the pods' requests on each node, and room/ sums up the
//	            free resources
//	sample/     spec.nodeTemplate from sample nodes and objects
//	preview/    the effects of a change of pools, for the kubectl plugin
//
// This package gathers the input for these decisions and carries them out:
//
//	node_controller.go  patches nodes
//	emptying_controller.go, emptying_memory.go
//	                    evicts pods, within PodDisruptionBudgets, from nodes that will get
//	                    NoExecute taints
//	pool_controller.go  reconciles a pool's finalizer, RuntimeClass, evictions, status and events
//	held_back.go        finds the Freeze that holds back NoExecute taints and evictions
//	watch.go            passes informer events to the model, and queues affected nodes and pools
//	headroom.go         evaluates the headroom of pools, in parallel with the reconciles
//	drainable.go, drainable_answer.go
//	                    evaluates which nodes of pools can be drained, in parallel with the
//	                    reconciles
//	answers.go          holds the results of these two evaluations, as conditions
//	status.go           computes a pool's status and conditions, and decides when to write them
//	metrics.go, drainable_metrics.go
//	                    declares the controllers' metrics
//	options.go, definition.go, setup.go
//	                    adds the controllers to the manager
//
// test/convergence tests the decision packages together; test/objects builds objects for tests.
package nodepool
