// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package words formats text for human readers.
//
//	words.go   first lines, indented blocks, ordinals and counts
package words
