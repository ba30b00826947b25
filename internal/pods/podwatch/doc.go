// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podwatch reports each transition of pods as it happens. It is built only on client-go: an
// informer, event handlers, and workers on a rate-limited queue. It needs no CRD and no manager.
//
// These files are pure, that is, they use no client, clock or logger:
//
//	transition.go  the transitions between two states of a pod
//	containers.go  the transitions of a pod's containers
//	events.go      the transitions for events about pods
//	backlog.go     the unreported transitions of each pod, in order
//
// The other files:
//
//	watcher.go     the informer and its event handlers
//	worker.go      the rate-limited queue; after three retries, a pod's transitions are dropped
//
// internal/kube/reconnect reconnects after a lost connection.
//
// # No transition is lost or repeated
//
// A workqueue holds each key only once, even if the pod changes several times before a worker takes
// the key, and a store holds only a pod's newest state. Therefore the event handlers append each
// state that the API server sends to the pod's backlog, and add the pod's key to the queue. A
// worker reports all states in the backlog as differences between consecutive states. It removes
// each reported transition, so that a retry repeats none.
//
// While the watcher is disconnected, the API server sends no intermediate states. The next state
// then shows only changes with a timestamp: when each condition last changed, even if it changed
// back, and when each container last started and terminated. Other changes are lost: phases,
// waiting reasons, all changes of a condition but the last, and all runs of a container but the
// last.
//
// Events are read by a separate watch. An event may therefore be reported before or after the state
// that it explains; its time shows the order. The API server keeps events for an hour, and the
// components that write events may drop some.
package podwatch
