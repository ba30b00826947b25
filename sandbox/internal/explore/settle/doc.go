// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settle detects when the cluster is quiet in a step of a run.
//
//	settle.go   the settler
package settle
