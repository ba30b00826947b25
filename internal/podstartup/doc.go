// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstartup tells how pods come up: which stage of its start-up took a
// pod how long, and what it waited for.
//
//	timeline.go  the stages of one pod, from nothing but the pod
//	waits.go     what it waited for in each
//
// Both are pure. kubectl tide uses them on pods as the API server has them; the
// cache of the manager keeps less of a pod.
package podstartup
