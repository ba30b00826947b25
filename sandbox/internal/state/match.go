// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pair holds an expected object and the actual object that probably corresponds to it.
type pair struct{ want, got Fields }

// mostCompared is the maximum number of comparisons made to match unequal objects. Above this
// number, the objects are paired in their fixed order.
const mostCompared = 2500

// match pairs expected objects with actual objects: first equal objects, then the most similar
// objects. Surplus objects of the larger group are not paired.
func match(want, got []Fields, same func(path, want, got string) bool) []pair {
	pairs, w, g := matchEqual(want, got)
	if len(w)*len(g) == 0 {
		return pairs
	}
	if len(w)*len(g) > mostCompared || len(w) == 1 && len(g) == 1 {
		for i := range min(len(w), len(g)) {
			pairs = append(pairs, pair{w[i], g[i]})
		}
		return pairs
	}
	type candidate struct{ w, g, differ int }
	all := make([]candidate, 0, len(w)*len(g))
	for i := range w {
		for j := range g {
			all = append(all, candidate{i, j, len(pair{w[i], g[j]}.differ(same))})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.differ, b.differ) })
	usedW, usedG := map[int]bool{}, map[int]bool{}
	for _, c := range all {
		if !usedW[c.w] && !usedG[c.g] {
			usedW[c.w], usedG[c.g] = true, true
			pairs = append(pairs, pair{w[c.w], g[c.g]})
		}
	}
	return pairs
}

// matchEqual pairs equal objects, and returns the remaining objects in a fixed order.
func matchEqual(want, got []Fields) (pairs []pair, restWant, restGot []Fields) {
	there := map[string][]Fields{}
	for _, g := range got {
		text := g.text()
		there[text] = append(there[text], g)
	}
	missing := map[string]Fields{}
	var order []string
	for i, w := range want {
		text := w.text()
		if same := there[text]; len(same) > 0 {
			pairs = append(pairs, pair{w, same[0]})
			there[text] = same[1:]
			continue
		}
		key := fmt.Sprintf("%s %d", text, i)
		missing[key] = w
		order = append(order, key)
	}
	slices.Sort(order)
	for _, key := range order {
		restWant = append(restWant, missing[key])
	}
	for _, text := range slices.Sorted(maps.Keys(there)) {
		restGot = append(restGot, there[text]...)
	}
	return pairs, restWant, restGot
}

// text returns the fields of an object as a single string, without empty values.
func (f Fields) text() string {
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(f)) {
		if f[path] != "" {
			fmt.Fprintf(&text, "%s=%s\n", path, f[path])
		}
	}
	return text.String()
}

// differ returns the paths at which the objects of a pair differ.
func (p pair) differ(same func(path, want, got string) bool) []string {
	var paths []string
	for path, want := range p.want {
		if got := p.got[path]; got != want && !same(path, want, got) {
			paths = append(paths, path)
		}
	}
	for path, got := range p.got {
		if _, both := p.want[path]; !both && got != "" && !same(path, "", got) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Differ returns the paths at which two objects differ.
func (f Fields) Differ(other Fields) []string {
	return pair{f, other}.differ(func(_, _, _ string) bool { return false })
}

// Values returns the values at a path in a group of objects. If the values differ, it returns each
// value with its frequency, such as "leader ×2 | follower ×1".
func Values(group []Fields, path string) string {
	counts := map[string]int{}
	for _, f := range group {
		counts[f[path]]++
	}
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(values) == 1 {
		return values[0]
	}
	for i, value := range values {
		values[i] = fmt.Sprintf("%s ×%d", cmp.Or(value, "missing"), counts[value])
	}
	return strings.Join(values, " | ")
}
