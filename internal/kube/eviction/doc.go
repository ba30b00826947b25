// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eviction evicts pods through the Eviction API, which enforces PodDisruptionBudgets.
//
//	eviction.go  sends an eviction, and classifies the API server's response
package eviction
