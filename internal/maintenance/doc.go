// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance empties nodes for maintenance, a few at a time, and puts them back into use.
//
// The controller "node-maintenance" decides about nodes: which drains begin, and when a node is
// drained, maintained and in use again. All necessary state is in the status of the NodeMaintenance
// and on the nodes, so a crash, a retry or a second leader does not change the outcome. The
// controller "node-drain" moves the pods of the nodes that are being drained. Each node is
// reconciled by itself, so a namespace whose pods cannot be moved delays only their own nodes.
//
// The package decision decides about nodes, and the package moves decides about pods.
//
//	definition.go  declares the controller "node-maintenance" to the manager
//	setup.go       the watches of both controllers
//	controller.go  the reconciler of NodeMaintenances
//	facts.go       gathers the facts about nodes, and whether their pods have a place elsewhere
//	act.go         patches nodes
//	cleanup.go     removes all traces of a deleted NodeMaintenance
//	drains.go      what is known about the pods of nodes, for both controllers
//	drain.go       the reconciler of nodes that are being drained
//	look.go        reads the facts about the pods of a node
//	restarts.go    requests restarts that move pods
//	metrics.go     the metrics
//
// The package forecast simulates the rest of a round. The package selection evaluates specs.
package maintenance
