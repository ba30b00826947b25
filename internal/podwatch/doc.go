// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podwatch reports each transition of pods as it happens. It is a controller
// on client-go alone: an informer, event handlers, and workers on a rate-limited queue.
// It needs no CRD and no manager.
//
// The pure part, without a client, a clock or a logger:
//
//	transition.go  what happened to a pod between two of its states
//	containers.go  what happened to its containers
//	events.go      the events about a pod, among its transitions
//	backlog.go     what has not been reported of each pod yet, in order
//
// The rest:
//
//	watcher.go     the informer and its event handlers
//	worker.go      the rate-limited queue: three retries, then the pod is dropped
//
// internal/reconnect continues after a lost connection.
//
// # What "without losing or repeating a transition" means
//
// A workqueue holds each key once, however often the pod changes before a worker takes
// it, and a store holds only the newest state. The handlers therefore append each state
// that the API server sends to the backlog of its pod, and add the key to the queue. A
// worker reports the whole backlog, each state by how it differs from the one before,
// and removes the transitions one by one, so that a retry repeats none.
//
// While the watcher is disconnected, the API server does not send it the states that
// come and go. The next state then shows what its timestamps keep: when each condition
// last changed, even if it changed back, and when each container last started and ended.
// Lost is what left no timestamp: a phase, a waiting reason, all changes of a condition
// but the last, and all runs of a container but the last.
//
// Events are notes beside the state. They come by a watch of their own, so an event may be
// reported before or after the state that it goes with; its time tells. The API server keeps
// them for an hour, and who writes them may drop some.
package podwatch
