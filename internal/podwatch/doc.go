// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podwatch tells each transition of pods as it happens: S3, the bare
// controller, on client-go alone. It needs no CRD and no manager.
//
// The pure floor, without a client, a clock or a logger:
//
//	transition.go  what has happened to a pod between two of its states
//	containers.go  the same for its containers
//	story.go       what is not told yet of a pod, in order
//
// The acting part:
//
//	watcher.go     the informer with its indexer and event handlers
//	worker.go      the rate-limited queue: three more tries, and then a drop
//	connection.go  goes on after a lost connection, and says so
//
// # What "without losing or repeating one" means
//
// A workqueue holds a key once, however often the pod changes before a worker
// comes to it, and a store holds the newest state only. So the handlers put each
// state that the API server sends into the story of its pod, and the key into the
// queue; a worker tells the whole story, each state by how it differs from the
// one before. What was told is left behind one transition at a time, so that a
// try that failed half way repeats none.
//
// While nobody is connected, states come and go that are never sent. Of those
// the next state tells what its timestamps keep: when each condition last
// changed, also if it is again what it was, and when each container last started
// and ended. What is gone without a trace is what changed twice in between and
// left none: a phase, a reason of waiting, all but the last change of a
// condition, all but the last run of a container.
package podwatch
