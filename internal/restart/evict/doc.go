// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evict decides which pods of a workload are evicted next, so that all pods that are
// older than a restart are replaced and not too many are unavailable at a time. It knows
// nothing of PodDisruptionBudgets: the API server keeps these.
//
//	evict.go  the decision
package evict
