// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures Tidekeeper on a real control plane, with the manager as released. Each
// figure is compared with a lower bound from the same run, such as a minimal client that does the
// same writes, or the size of the data. Some figures are also compared with an alternative that a
// user might choose. The alternatives are in the folder baseline and are not part of Tidekeeper.
// make bench prints the tables.
//
// As part of make test the benchmark is small and asserts nothing about durations: only that an
// idle manager sends no requests, writes to no node and no workload twice, and does not list
// objects because of an event.
package scale
