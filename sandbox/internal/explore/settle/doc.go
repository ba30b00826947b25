// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settle knows when all is at rest in a step of a run.
//
//	settle.go   the settler
package settle
