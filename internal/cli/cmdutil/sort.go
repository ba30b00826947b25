// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// sortBy sorts a list of objects by the values at a JSONPath. It compares numbers and quantities
// numerically, and other values as strings. Objects without a value at the path come first.
func sortBy(list runtime.Object, path string) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	places, err := order(items, path)
	if err != nil {
		return err
	}
	sorted := make([]runtime.Object, len(items))
	for i, place := range places {
		sorted[i] = items[place]
	}
	return meta.SetList(list, sorted)
}

// order returns the indexes of the objects, sorted by the values at a JSONPath.
func order(items []runtime.Object, path string) ([]int, error) {
	parsed, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	places, keys, found := make([]int, len(items)), make([][]any, len(items)), false
	for i, item := range items {
		if keys[i], err = valuesAt(item, parsed); err != nil {
			return nil, err
		}
		places[i] = i
		found = found || len(keys[i]) > 0
	}
	if len(items) > 0 && !found {
		return nil, fmt.Errorf("no object has this field")
	}
	slices.SortStableFunc(places, func(a, b int) int { return compareValues(keys[a], keys[b]) })
	return places, nil
}

// compareValues compares the values that two objects have at the same JSONPath.
func compareValues(a, b []any) int {
	for i := range min(len(a), len(b)) {
		x, y := fmt.Sprint(a[i]), fmt.Sprint(b[i])
		if p, err := resource.ParseQuantity(x); err == nil {
			if q, err := resource.ParseQuantity(y); err == nil {
				if c := p.Cmp(q); c != 0 {
					return c
				}
				continue
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
