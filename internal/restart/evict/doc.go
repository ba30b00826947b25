// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evict decides which pods of a workload are evicted next, so that all pods that are older
// than a restart are replaced, and no more pods than allowed are unavailable at a time. It ignores
// PodDisruptionBudgets, which the API server enforces.
//
//	evict.go  decides which pods are evicted next
package evict
