// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drain predicts, before a node is drained, which pods the drain would not remove, which
// workloads it would harm, and why. The package has no client, clock or logger.
//
//	blockers.go  collects the reasons why a node's pods block a drain
//	budget.go    predicts the Eviction API's response from PodDisruptionBudgets
//	volume.go    finds volumes that tie pods to their node
package drain
