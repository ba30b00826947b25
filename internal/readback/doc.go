// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readback has a client that reads from the cache and, after a bounded wait,
// always shows what it has written itself.
//
// A reconcile that follows a write must see it, or it would decide on the old state and
// write again. controller-runtime's client can do that too, but it waits for an event of
// each write, without a bound. An event can be lost for good: if an object is deleted and
// created again while the watch is disconnected, the cache reports one changed object; if
// it is deleted, the cache reports the last version that it knew. This client does not
// wait for events. It compares what the cache returns with what was written, and if the
// cache is behind for too long, it asks the API server.
//
//	client.go  the client
//	writes.go  what was written, and whether the cache shows it
package readback
