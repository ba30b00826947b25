// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists provides helper functions for the items of lists of objects.
package lists

import (
	"cmp"
	"slices"
)

// Pointers returns a pointer to each item. The items are not copied.
func Pointers[T any](items []T) []*T {
	pointers := make([]*T, len(items))
	for i := range items {
		pointers[i] = &items[i]
	}
	return pointers
}

// InTurns reorders items so that their namespaces take turns: the first item of each namespace, then
// the second of each, and so on. Use it before sending a limited number of requests, so that the many
// items of one tenant do not hold back those of others. It returns a new slice.
func InTurns[T any](items []T, namespace func(T) string) []T {
	type ranked struct {
		item T
		rank int // the position within the namespace
	}
	seen := map[string]int{}
	all := make([]ranked, len(items))
	for i, item := range items {
		all[i] = ranked{item, seen[namespace(item)]}
		seen[namespace(item)]++
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	ordered := make([]T, len(items))
	for i := range all {
		ordered[i] = all[i].item
	}
	return ordered
}
