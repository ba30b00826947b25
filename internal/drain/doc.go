// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drain predicts, before a node is drained, which pods would not leave the node, or not without harm,
// and why. It has no client, clock or logger.
//
//	blockers.go  the blockers of a node
//	budget.go    the answer of the Eviction API, by PodDisruptionBudgets
//	volume.go    volumes that tie pods to their node
package drain
