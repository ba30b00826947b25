// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeze implements Freezes: it provides the freezes in force to the other controllers,
// and maintains the status of each Freeze. The package period decides which freezes are in
// force.
//
//	definition.go  declares the controller to the manager
//	setup.go       its watches
//	controller.go  one reconcile
//	status.go      the status of a Freeze
//	heldback.go    counts the restarts and nodes that are held back
//	reader.go      reads the freezes in force, for other controllers
//	live.go        reads them from the API server, shared by concurrent callers
//	confirm.go     asks the API server whether cached freezes still exist
//	metrics.go     its metrics
package freeze
