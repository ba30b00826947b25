// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readback provides a client that reads from the cache and, after a bounded wait, always
// shows its own writes.
//
// A reconcile that runs after a write must see the write. Otherwise it would decide on the old
// state and write again. controller-runtime's client can also wait for its writes, but it waits for
// each write's event, without a bound, and an event may never arrive. If an object is deleted and
// created again while the watch is disconnected, the cache reports a single changed object; if it
// is only deleted, the cache reports its last known version. The client of this package does not
// wait for events. It compares the cached object with its last write, and if the cache is behind
// for too long, it reads the object from the API server.
//
//	client.go  the client
//	writes.go  the client's last write to each object, and whether the cache shows it
package readback
