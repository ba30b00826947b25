// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package term draws tables, bars, colors, and times in words on a terminal or into a pipe. It does
// not depend on Kubernetes objects.
//
//	screen.go  the capabilities of the output stream
//	table.go   tables of text cells
//	layout.go  fitting a table on a narrow screen
//	bar.go     shares as bars
//	words.go   times, durations and numbers in words
package term
