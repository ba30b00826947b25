// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plugin, kubectl tide.
//
//   - root.go: the process and the root command
//   - completion.go: shell completion
//   - pools/, restarts/, pods/, freezes/, check/, migrate/, dashboard/: the commands, a package per family
//   - cmdutil/: shared by the commands
//
// internal/view computes the shown values, without a cluster and a terminal; internal/term has tables,
// bars and colors. A command reads objects, passes them to view, and draws the result with term.
package cli
