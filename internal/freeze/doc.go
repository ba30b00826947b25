// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeze is the Freeze capability: it tells the other controllers which freezes are in
// force, and keeps the status of each Freeze. The package period decides which are.
//
//	definition.go  what the controller needs from the manager
//	setup.go       its watches
//	controller.go  one reconcile
//	status.go      the status of a Freeze
//	heldback.go    counts what is held back
//	reader.go      reads the freezes in force, for other controllers
//	live.go        reads them from the API server, once for many
//	confirm.go     asks the API server whether what the cache has still exists
//	metrics.go     its metrics
package freeze
