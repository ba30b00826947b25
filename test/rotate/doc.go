// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rotate measures what workloads suffer while every node of a cluster is emptied, maintained
// and used again, one node after the other. The same world is rotated by NodeMaintenances, also with
// managers that are killed and with watches that lose events, and by the tools that are used without
// them: kubectl drain, kubectl drain --disable-eviction, and a NoExecute taint. make bench-rotate
// prints the table.
//
// All figures follow from the API server's history of pods and nodes, which a film records by
// watches. As part of make test-all the world is small, and nothing is asserted about durations.
//
//	history.go  outages, deletions and violated budgets of workloads, from the history of their pods
//	nodes.go    rotations of nodes, from the history of nodes and pods, and the least time that they need
package rotate
