// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInternalsTree checks that the directory tree in internals.md lists every folder in cmd and
// internal and every other top-level folder, and lists no folder that does not exist.
func TestInternalsTree(t *testing.T) {
	page, err := os.ReadFile("internals.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tree, _ := strings.Cut(string(page), "\n```\n")
	tree, _, found := strings.Cut(tree, "\n```\n")
	if !found {
		t.Fatal("internals.md has no folder tree")
	}
	var listed []string
	for line := range strings.Lines(tree) {
		folder, _, ok := strings.Cut(line, "/ ")
		if info, err := os.Stat(filepath.Join("..", folder)); !ok || err != nil || !info.IsDir() {
			t.Errorf("internals.md has the line %q, which names no folder", line)
		}
		listed = append(listed, folder)
	}
	for _, parent := range []string{".", "cmd", "internal"} {
		entries, err := os.ReadDir(filepath.Join("..", parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			folder := filepath.Join(parent, entry.Name())
			is := func(l string) bool { return l == folder || strings.HasPrefix(l, folder+"/") }
			if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") && folder != "bin" && !slices.ContainsFunc(listed, is) {
				t.Errorf("internals.md does not have the folder %s", folder)
			}
		}
	}
}
