// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures Tidekeeper on a real control plane, with the manager as
// it is released. Beside each figure stands its limit, measured in the same run,
// of what nothing could do better: a bare client that does the same writes, or
// the bytes of the data itself; and what a user would pick instead, which is in
// baseline and no part of Tidekeeper. make bench prints the tables.
//
// As a test it is small, and asserts nothing about time: only that the manager
// asks for nothing at rest, writes to no node and no workload twice, and lists
// nothing because of an event.
package scale
