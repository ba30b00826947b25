// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/test/soundness"
)

// TestOperatorsArePairs checks that each pair has an operator, and that each operator belongs to a
// pair.
func TestOperatorsArePairs(t *testing.T) {
	var pairs []string
	for _, p := range soundness.Pairs() {
		pairs = append(pairs, p.Name)
	}
	slices.Sort(pairs)
	if operators := slices.Sorted(maps.Keys(reconcilers)); !slices.Equal(pairs, slices.Sorted(slices.Values(append(operators, slices.Collect(maps.Keys(programs))...)))) {
		t.Errorf("the pairs are %q, and the operators %q and %q", pairs, operators, slices.Sorted(maps.Keys(programs)))
	}
}
