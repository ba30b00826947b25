// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package term draws on a terminal, or into a pipe: tables, bars, colors, and
// times in words. It knows nothing of Kubernetes.
//
//   - screen.go: the abilities of the output
//   - table.go: rows of cells
//   - layout.go: how a table gives way on a narrow screen
//   - bar.go: shares as bars
//   - words.go: times and numbers in words
package term
