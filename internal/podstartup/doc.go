// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstartup tells how pods come up: which stage of its start-up took a
// pod how long, and what it waited for.
//
// The pure floor, without a client, a clock or a logger:
//
//	timeline.go  the stages of one pod, from nothing but the pod
//	waits.go     what it waited for in each
//	summary.go   what the manager's cache keeps of that
//	pool.go      the pool of a node
//
// kubectl tide asks the first two about pods as the API server has them.
//
// The controller counts the start-up of each pod once, in histograms by stage
// and node pool: observer.go decides what counts, and setup.go feeds it from the
// informers. The histograms stand in observability.go.
package podstartup
