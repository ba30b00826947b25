// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readback provides a client that reads from the cache and, after a bounded wait,
// always shows its own writes.
//
// A reconcile that follows a write must see the write, or it would decide on the old state and
// write again. controller-runtime's client can wait, too, but it waits for an event of each
// write, without a bound. An event can be lost for good: if an object is deleted and created
// again while the watch is disconnected, the cache reports a single changed object; if it is
// deleted, the cache reports the last version that it knew. This client does not wait for
// events. It compares the cached object with the last write, and if the cache is behind for too
// long, it reads from the API server.
//
//	client.go  the client
//	writes.go  the last writes, and whether the cache shows them
package readback
