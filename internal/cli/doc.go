// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli implements kubectl tide, the kubectl plugin.
//
//	root.go                             entry point and root command
//	completion.go                       the command completion, and completions of common flags
//	pools/, maintenance/, restarts/,    the other commands
//	pods/, freezes/, check/, migrate/,
//	dashboard/
//	cmdutil/                            common code of the commands
//
// A command reads objects, computes the values to show with internal/view, which needs neither a
// cluster nor a terminal, and draws them with the tables, bars and colors of internal/term.
package cli
