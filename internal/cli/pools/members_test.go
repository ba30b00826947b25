// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestManyMembers checks that a large pool is shown as a histogram with its fullest nodes.
func TestManyMembers(t *testing.T) {
	var members []view.Member
	for i := range 60 {
		level := int32(100)
		if i >= 20 {
			level = int32(60 - i)
		}
		members = append(members, view.Member{Name: fmt.Sprint("node-", i), Ready: true, Levels: []view.Level{{Resource: "cpu", Percent: level}}})
	}
	show := func(all bool) []string {
		var out strings.Builder
		if err := printMembers(&out, members, all, noon, term.Screen{}); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	got := show(false)
	want := []string{
		"FULLEST RESOURCE   NODES",
		"100% or more       20",
		"40–49%             1",
		"30–39%             10",
		"20–29%             10",
		"10–19%             10",
		"0–9%               9",
		"",
		"The 10 fullest of 60 nodes; --all shows all:",
		"NODE     READY   CPU    MEMORY   PODS   LACKS",
		"node-0   yes     100%   -        -      -",
	}
	if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" || len(got) != 20 {
		t.Errorf("%d lines, want 20 (-want +got):\n%s", len(got), diff)
	}
	if got := show(true); len(got) != 61 {
		t.Errorf("with --all there are %d lines, want 61", len(got))
	}
}
