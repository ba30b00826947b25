// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	names := []string{"A", "B", "Long", "C", "D", "E"}
	got := split(names, 2, map[string]int{"Long": 16})
	if diff := cmp.Diff([][]string{{"Long", "E"}, {"A", "B", "C", "D"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all := slices.Concat(got...)
	slices.Sort(all)
	slices.Sort(names)
	if diff := cmp.Diff(names, all); diff != "" {
		t.Errorf("each test is in one shard (-want +got):\n%s", diff)
	}
}
