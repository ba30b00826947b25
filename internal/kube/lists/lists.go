// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists provides helper functions for the items of lists of objects.
package lists

// Pointers returns a pointer to each item. The items are not copied.
func Pointers[T any](items []T) []*T {
	pointers := make([]*T, len(items))
	for i := range items {
		pointers[i] = &items[i]
	}
	return pointers
}
