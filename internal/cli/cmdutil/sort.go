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

// sortBy sorts a list by what its items have at a path: numbers and quantities
// by their size, anything else as text, and what has nothing there first.
func sortBy(list runtime.Object, path string) error {
	parsed, err := parsePath(path)
	if err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	type keyed struct {
		item runtime.Object
		key  []any
	}
	all, found := make([]keyed, len(items)), false
	for i, item := range items {
		values, err := valuesAt(item, parsed)
		if err != nil {
			return err
		}
		all[i] = keyed{item, values}
		found = found || len(values) > 0
	}
	if len(items) > 0 && !found {
		return fmt.Errorf("no object has this field")
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return compareValues(a.key, b.key) })
	for i := range all {
		items[i] = all[i].item
	}
	return meta.SetList(list, items)
}

// compareValues compares what two objects have at the same path.
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
