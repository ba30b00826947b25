// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settle detects when the cluster has become quiet in a step of a run.
//
//	settle.go   waits until nothing changes any longer
package settle
