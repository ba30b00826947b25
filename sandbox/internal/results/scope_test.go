// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// TestMeans checks that all report formats describe the completed cases, and the compared and
// excluded objects, in the same words.
func TestMeans(t *testing.T) {
	const shop, field = "shops default/bread", "status.oven"
	by := &Scope{
		Judged: []Judged{{Resource: "shops", Namespaces: []string{"default"}, Objects: 2, Fields: 30}, {Resource: "nodes", Objects: 3, Fields: 12}}, Others: 7,
		NotCompared: []NotCompared{{What: "configmaps", Why: "the control plane's own in kube-system", Objects: 4}, {What: "the status of pods", Why: "what kubelets write of it", Objects: 2, Fields: 9}},
		Never:       []string{"events"},
		Masked:      []state.Masked{{Object: shop, Path: field, Seen: []string{"hot", "cold"}, Why: "differs between undisturbed runs"}},
		Besides:     []string{"pods, how often they are created"},
	}
	counting := *tool
	counting.Effects = []Effect{{"fine", "took effect"}, {NotReached, "did not take effect"}}
	r := &Result[*wrong]{Planned: 9, Left: 4, Scope: by, Played: []Played{
		{ID: "a", Outcome: "fine"}, {ID: "b", Outcome: NotReached}, {ID: "c", Outcome: "fine", Error: "late by 3 s\nmore"}, {ID: "d", Error: "late by 4 s"}, {ID: "e", Error: "etcd crashed"},
	}}
	want := `
What this result means:
  Played
    of 9 cases: 5
    1 took effect
    1 did not take effect
    3 could not be judged
    4 were left out: nothing is known of them
  Could not be judged
    2: late by 3 s
    1: etcd crashed
  Judged
    42 fields of 5 objects of 2 kinds, in 1 namespace and in none
    shops: 2 objects in default, 30 fields
    nodes: 3 objects, 12 fields
    7 kinds more, of which there was no object
  Not compared
    configmaps, 4 objects: the control plane's own in kube-system
    the status of pods, 9 fields of 2 objects: what kubelets write of it
    1 kind, never: events
  Masked
    shops default/bread status.oven (hot or cold): it differs between undisturbed runs
    pods, how often they are created
`
	var text bytes.Buffer
	counting.means(&text, r)
	if text.String() != want {
		t.Errorf("the report says\n%s\nwant\n%s", text.String(), want)
	}
	dir := t.TempDir()
	if err := counting.HTML(filepath.Join(dir, "page"), r); err != nil {
		t.Fatal(err)
	}
	if err := counting.JSON(dir, r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"page", resultFile} {
		said, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"4 were left out", "2: late by 3 s", "shops: 2 objects in default, 30 fields", field + " (hot or cold)"} {
			if !strings.Contains(string(said), line) {
				t.Errorf("%s lacks %q:\n%s", name, line, said)
			}
		}
	}
	text.Reset()
	counting.means(&text, &Result[*wrong]{})
	if !strings.Contains(text.String(), "nothing is known of that") {
		t.Errorf("of nothing it says\n%s", text.String())
	}
}

// TestMergeScopes checks that a merged result has the union of its parts' scopes.
func TestMergeScopes(t *testing.T) {
	scopes := []*Scope{
		{Judged: []Judged{{Resource: "shops", Namespaces: []string{"a"}, Objects: 2, Fields: 30}}, Others: 7, Never: []string{"events"}, Masked: []state.Masked{{Object: "shops a/b", Path: "status"}}},
		{Judged: []Judged{{Resource: "nodes", Objects: 1, Fields: 3}, {Resource: "shops", Namespaces: []string{"b"}, Objects: 1, Fields: 31}}, Others: 6, Never: []string{"events"}, Masked: []state.Masked{{Object: "shops a/b", Path: "spec"}}},
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		keep(t, dir, nil)
		book := open(t, dir, of("one", "1", "1"))
		if err := book.Plan(i+1, 2, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		if err := book.Judge(scopes[i]); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := tool.Merge(dirs)
	if err != nil {
		t.Fatal(err)
	}
	s := merged.Scope
	if s == nil || len(s.Judged) != 2 || s.Others != 6 || len(s.Masked) != 2 || len(s.Never) != 1 {
		t.Fatalf("merged to %+v", s)
	}
	if shops := s.Judged[1]; shops.Objects != 2 || shops.Fields != 31 || !slices.Equal(shops.Namespaces, []string{"a", "b"}) {
		t.Errorf("merged to %+v", shops)
	}
	if merged.Planned != 1 || merged.Left != 1 {
		t.Errorf("%d planned, %d left", merged.Planned, merged.Left)
	}
}
