// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package moves decides how each pod leaves a node that is being drained: by an eviction, by a
// restart of its workload, or not at all. It uses no client, clock or logger.
//
//	moves.go   the facts, and the decision for each pod
//	rescue.go  workloads that an eviction would take down, and whether a restart moves them first
package moves
