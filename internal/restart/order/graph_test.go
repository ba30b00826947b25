// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func TestGraph(t *testing.T) {
	g := &Graph{}
	for name, after := range map[string][]string{
		"a": {"b", "c"}, "b": {"d"}, "c": {"d", "a"}, "d": {"e"}, "e": {"d"}, "self": {"self"}, "between": {"d"}, "app": {"none"},
	} {
		g.Set(key(name), after)
	}
	g.Set(types.NamespacedName{Namespace: "other", Name: "none"}, []string{"app"})
	for name, want := range map[string][]string{
		"a": {"a", "c", "a"}, "b": nil, "c": {"c", "a", "c"}, "d": {"d", "e", "d"}, "self": {"self", "self"}, "between": nil, "app": nil, "none": nil,
	} {
		if diff := cmp.Diff(want, g.Cycle(key(name))); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"b", "between", "c", "e"}, g.Followers(key("d"))); diff != "" {
		t.Errorf("after d (-want +got):\n%s", diff)
	}
	g.Set(key("a"), []string{"b"})
	g.Set(key("e"), nil)
	for _, name := range []string{"a", "c", "d", "e"} {
		if got := g.Cycle(key(name)); got != nil {
			t.Errorf("%s is on the cycle %v, which was broken", name, got)
		}
	}
}

// TestLongCycles checks that a cycle of 900 names is returned completely, and that a cycle of 5000
// names is abbreviated.
func TestLongCycles(t *testing.T) {
	for length, want := range map[int]int{900: 901, 5000: 3} {
		g := &Graph{}
		for i := range length {
			g.Set(key(fmt.Sprint(i)), []string{fmt.Sprint((i + 1) % length)})
		}
		way := g.Cycle(key("0"))
		if len(way) != want || way[0] != "0" || way[len(way)-1] != "0" {
			t.Errorf("of %d: a way of %d", length, len(way))
		}
	}
}

// TestGraphEqualsSearch checks for random edits that the graph finds the same cycles as a search,
// that it returns the right followers, and that it is empty when no ScheduledRestart has
// predecessors.
func TestGraphEqualsSearch(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		g, edges := &Graph{}, map[string][]string{}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "name")
				after := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "after")
				g.Set(key(name), after)
				edges[name] = after
			},
			"": func(t *rapid.T) {
				for _, name := range names {
					searched, _ := decision.FindCycle(name, func(name string) ([]string, error) { return edges[name], nil })
					way := g.Cycle(key(name))
					if (searched == nil) != (way == nil) || len(way) > len(searched) {
						t.Fatalf("%s in %v: %v, but the search found %v", name, edges, way, searched)
					}
					for i := range len(way) - 1 {
						if !slices.Contains(edges[way[i]], way[i+1]) {
							t.Fatalf("%s in %v: %v is no way", name, edges, way)
						}
					}
					var followers []string
					for _, other := range slices.Sorted(maps.Keys(edges)) {
						if slices.Contains(edges[other], name) {
							followers = append(followers, other)
						}
					}
					if diff := cmp.Diff(followers, g.Followers(key(name))); diff != "" {
						t.Fatalf("after %s in %v (-want +got):\n%s", name, edges, diff)
					}
				}
			},
		})
		for _, name := range names {
			g.Set(key(name), nil)
		}
		if len(g.namespaces) > 0 {
			t.Fatalf("without any order there is %v", g.namespaces)
		}
	})
}
