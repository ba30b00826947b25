// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plugin, kubectl tide.
//
//   - root.go: the process and the root command
//   - completion.go: completions of the shell
//   - pools/, restarts/, pods/, migrate/, dashboard/: the commands, a package per family
//   - cmdutil/: shared by the commands
//   - term/: tables, bars and colors
//
// internal/view computes the shown values, without a cluster and a terminal;
// a command reads objects, hands them over, and draws the result.
package cli
