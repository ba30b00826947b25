// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podtimeline computes a timeline of a pod's startup: the duration of each stage, and the
// reasons for waiting. It is pure: its only input is the pod.
//
//	timeline.go  the stages of a pod's startup
//	ends.go      the end of each stage, read from the pod's status
//	waits.go     the reasons for waiting in each stage
//	summary.go   the summary of a timeline in the manager's cache
package podtimeline
