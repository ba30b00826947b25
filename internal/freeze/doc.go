// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeze implements Freezes: it provides the freezes in force to the other controllers,
// and maintains the status of each Freeze. The package period decides which freezes are in
// force.
//
//	definition.go  declares the controller "freeze" to the manager
//	setup.go       the watches of the controller
//	controller.go  the reconciler
//	status.go      computes the status of a Freeze
//	heldback.go    counts the restarts and nodes that a Freeze holds back
//	reader.go      reads the freezes in force, for other controllers
//	live.go        reads Freezes from the API server, shared by concurrent callers
//	confirm.go     checks on the API server whether cached Freezes still exist
//	metrics.go     the metrics of Freezes
package freeze
