// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podtimeline computes how a pod started: the duration of each stage of its startup,
// and the reasons for waiting. It is pure: its only input is the pod.
//
//	timeline.go  the stages of a pod
//	ends.go      the end of each stage, from the pod's status
//	waits.go     the reasons for waiting in each stage
//	summary.go   the short form for the manager's cache
package podtimeline
