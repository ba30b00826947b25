// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podwatch reports each transition of pods as it happens. It is a controller on
// client-go alone: an informer, event handlers, and workers on a rate-limited queue. It needs
// no CRD and no manager.
//
// The pure part, without a client, a clock or a logger:
//
//	transition.go  the transitions between two states of a pod
//	containers.go  the transitions of its containers
//	events.go      the events about a pod, among its transitions
//	backlog.go     the unreported transitions of each pod, in order
//
// The rest:
//
//	watcher.go     the informer and its event handlers
//	worker.go      the rate-limited queue: three retries, then the pod is dropped
//
// internal/kube/reconnect continues after a lost connection.
//
// # No transition is lost or repeated
//
// A workqueue holds each key once, however often the pod changes before a worker takes it, and
// a store holds only the newest state. The handlers therefore append each state that the API
// server sends to the backlog of its pod, and add the key to the queue. A worker reports the
// whole backlog as differences between consecutive states, and removes each reported transition,
// so that a retry repeats none.
//
// While the watcher is disconnected, the API server does not send intermediate states. The next
// state then shows only the changes that left timestamps: when each condition last changed,
// even if it changed back, and when each container last started and ended. Changes without a
// timestamp are lost: phases, waiting reasons, all changes of a condition but the last, and all
// runs of a container but the last.
//
// Events come by a separate watch, so an event may be reported before or after the state that
// it belongs to; its time shows the order. The API server keeps events for an hour, and the
// components that write events may drop some.
package podwatch
