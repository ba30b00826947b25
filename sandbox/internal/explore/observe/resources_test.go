// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage checks that explore-findings.md lists exactly the kinds and namespaces that are never
// judged.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/explore-findings.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string) string {
		t.Helper()
		match := regexp.MustCompile(`(?m)^\| ` + name + ` \| (.*) \|$`).FindSubmatch(page)
		if match == nil {
			t.Fatalf("the page has no row %q", name)
		}
		return string(match[1])
	}
	var kinds []string
	for _, resource := range unrecorded {
		kind, _, _ := strings.Cut(resource, ".")
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	if told := slices.Sorted(strings.SplitSeq(strings.ToLower(row("kinds")), ", ")); !slices.Equal(told, kinds) {
		t.Errorf("the page has the kinds %q, want %q", told, kinds)
	}
	of := row("objects of the control plane")
	for _, namespace := range systemNamespaces {
		if !strings.Contains(of, "`"+namespace+"`") {
			t.Errorf("the page does not name %s: %s", namespace, of)
		}
	}
}
