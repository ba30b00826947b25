// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodepool keeps NodePools: it brings each member node into the shape
// that its pools ask for, and shows each pool's water level.
//
// It has three floors.
//
// The pure floor decides, without a client, a clock or a logger:
//
//	membership.go    which nodes a pool selects
//	record.go        what pools have put on a node, as the node itself records it
//	plan.go          the one patch that brings a node into shape
//	noexecute.go     which nodes may get an evicting taint next
//	runtimeclass.go  the RuntimeClass of a pool
//	level.go         sums of resources
//	fleet.go         all pools, nodes and pods as one model with running sums
//	fight.go         which nodes are written too often
//	status.go        a pool's status and conditions, and when to write them
//	news.go          many changes, told as few events
//	future.go        what nodes come to look like if all that is carried out
//	preview.go, preview_pods.go  what a change of pools would do to nodes and pods
//
// The controllers act: node_controller.go patches one node, pool_controller.go
// looks after one pool's finalizer, RuntimeClass, status and events, and
// watch.go feeds the model from the informers and queues what changed.
//
// What users' dashboards and alerts depend on stands in observability.go.
package nodepool
