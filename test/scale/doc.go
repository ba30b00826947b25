// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures Tidekeeper on a real control plane, with the released manager.
// Each figure has a limit that nothing could improve on, measured in the same run: a
// bare client that does the same writes, or the size of the data itself. It also has
// the figure of an alternative that a user might choose, which is in baseline and not
// part of Tidekeeper. make bench prints the tables.
//
// As a test it is small, and asserts nothing about time: only that an idle manager
// sends no requests, that it writes to no node and no workload twice, and that it lists
// nothing because of an event.
package scale
