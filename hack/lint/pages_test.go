// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPages(t *testing.T) {
	long := strings.Repeat("x", maxCell+1)
	for _, tt := range []struct {
		name, file, source string
		want               int
	}{
		{"a long cell", "docs/a.md", "| a | " + long + " |\n", 1},
		{"a cell that just fits", "docs/a.md", "| a | " + long[1:] + " |\n", 0},
		{"an escaped bar", "docs/a.md", "| `a\\|b` | " + long[1:] + " |\n", 0},
		{"a long line of text", "docs/a.md", long + "\n", 0},
		{"code", "docs/a.md", "```\n| " + long + " |\n# Once\n```\n", 0},
		{"vague headings", "docs/a.md", "# Pools\n\n## Once\n\n## What it says\n\n### When the clock changes\n", 3},
		{"a pronoun", "docs/a.md", "## Set it up\n", 1},
		{"headings that name their thing", "docs/a.md", "# How many more pods fit\n\n## Before you begin\n\n## Order of restarts\n", 0},
		{"notes beside tests", "test/a.md", "# Once\n\n| " + long + " |\n", 0},
	} {
		if got := checkPage(tt.file, []byte(tt.source)); len(got) != tt.want {
			t.Errorf("%s: %d findings %v, want %d", tt.name, len(got), got, tt.want)
		}
	}
}

// A page that is not checked has something to find: otherwise it can be checked.
func TestUncheckedPages(t *testing.T) {
	whole, cells := unchecked, longCells
	unchecked, longCells = nil, nil
	defer func() { unchecked, longCells = whole, cells }()
	for _, page := range slices.Concat(whole, cells) {
		source, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Error(err)
		} else if len(checkPage(page, source)) == 0 {
			t.Errorf("%s has nothing to find: remove it from the list", page)
		}
	}
}

// pageCeilings are the most words in place of nouns among 1,000 words of the pages of a product, as
// ceilings has them for comments. The aim is 8: lower them whenever they can be lowered.
var pageCeilings = []struct {
	folders []string
	most    float64
}{
	{[]string{"README.md", "docs/"}, 22},
	{[]string{"sandbox/README.md", "sandbox/docs/"}, 26},
}

func TestPagesNameTheirThing(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := listFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pageCeilings {
		pages := slices.DeleteFunc(slices.Clone(files), func(file string) bool {
			return !strings.HasSuffix(file, ".md") || !hasPrefix(file, c.folders)
		})
		words, density := densityOf(t, root, pages, func(_ string, source []byte) []byte { return proseOfMarkdown(source) })
		if words < 5_000 || density > c.most {
			t.Errorf("%v: %.1f of 1,000 words (%d) are in place of nouns (%s), want at most %.1f: name the thing", c.folders, density, words, inPlaceOfNouns, c.most)
		}
	}
}
