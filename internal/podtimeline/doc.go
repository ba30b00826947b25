// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podtimeline computes how a pod started: how long each stage of its
// start-up took, and what it waited for. It is pure: all it reads is the pod.
//
//	timeline.go  the stages of one pod
//	ends.go      when a pod says that each stage ended
//	waits.go     what the pod waited for in each stage
//	summary.go   the few bytes of it that the manager's cache keeps
package podtimeline
