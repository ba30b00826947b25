// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drain predicts, before a node is drained, which pods the drain would not remove, which
// workloads it would harm, and why. The package has no client, clock or logger.
//
//	blockers.go  collects the reasons why a node's pods block a drain
//	budget.go    predicts the Eviction API's response from PodDisruptionBudgets
//	volume.go    finds volumes that tie pods to their node
//	facts.go, cachedbudget.go
//	             the compact form of pods and PodDisruptionBudgets in the manager's cache
//	matching.go  finds the cached PodDisruptionBudgets that select a cached pod
//	survey.go    finds the blockers of many nodes from the cache
//	tally.go     counts the blockers of a pool's nodes
package drain
