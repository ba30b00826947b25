// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plugin, kubectl tide.
//
//   - root.go: the process and the root command
//   - completion.go: what the shell completes
//   - pools/, restarts/, pods/, migrate/, dashboard/: the commands, a package per family
//   - cmdutil/: what the commands share
//   - term/: tables, bars and colors
//
// What is shown is computed in internal/view, without a cluster and a terminal;
// a command reads objects, hands them over, and draws what it gets back.
package cli
