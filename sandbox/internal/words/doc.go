// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package words forms lines for people.
//
//	words.go   first lines, indented lines, numbers
package words
