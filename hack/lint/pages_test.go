// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
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

// pageCeilings lists, for each product, the maximum number of inPlaceOfNouns words per 1,000 words
// in its pages, as trees does for comments. Lower the ceilings whenever possible.
var pageCeilings = []struct {
	folders []string
	most    float64
}{
	{[]string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/"}, 5},
	{[]string{"sandbox/README.md", "sandbox/docs/"}, 6},
}

func TestPagesNameTheirThing(t *testing.T) {
	for _, c := range pageCeilings {
		pages := func(file string) bool { return strings.HasSuffix(file, ".md") && hasPrefix(file, c.folders) }
		words, density := densityOf(t, pages, func(_ string, source []byte) []byte { return proseOfMarkdown(source) })
		if words < 5_000 || density > c.most {
			t.Errorf("%v: %.1f of 1,000 words (%d) are in place of nouns (%s), want at most %.1f: name the thing", c.folders, density, words, inPlaceOfNouns, c.most)
		}
	}
}

// maxWords is the maximum number of words in all pages together. maxPageWords is the maximum number
// of words in a page.
const (
	maxWords     = 35_000
	maxPageWords = 1_200
)

// tables lists pages that may exceed maxPageWords, because readers look up single entries in them.
var tables = []string{"docs/reference/reasons.md"}

var hasLetter = regexp.MustCompile(`[\p{L}\p{N}]`)

func wordsOf(text string) int {
	words := 0
	for field := range strings.FieldsSeq(text) {
		if hasLetter.MatchString(field) {
			words++
		}
	}
	return words
}

// TestPagesAreFew checks the number of words: it should be possible to read all pages in a few
// hours, and a page in a few minutes. Generated pages are not counted.
func TestPagesAreFew(t *testing.T) {
	words := 0
	for file, text := range contents(t, func(file string) bool {
		return strings.HasSuffix(file, ".md") && hasPrefix(file, wholePages) && !isExempt(file)
	}) {
		n := wordsOf(string(text))
		if n > maxPageWords && !slices.Contains(tables, file) {
			t.Errorf("%s has %d words, want at most %d: split it by task or concept", file, n, maxPageWords)
		}
		words += n
	}
	if words < maxWords/2 || words > maxWords {
		t.Errorf("all pages have %d words, want at most %d: shorten pages, or leave proofs to the tests", words, maxWords)
	}
}

func TestWordsOf(t *testing.T) {
	if got := wordsOf("| a | `b c` |\n|---|---|\n\n- 12 is — é\n"); got != 6 {
		t.Errorf("got %d words, want 6", got)
	}
}
