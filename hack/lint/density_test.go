// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// inPlaceOfNouns matches words that take the place of nouns. A comment should name its subject by a
// noun for which readers can search: "what is kept of those that are made from bytes" is "the
// shared part of records built from protobuf". The density of these words only indicates unclear
// comments.
var inPlaceOfNouns = regexp.MustCompile(`(?i)\b(?:what|those|one|ones)\b`)

var word = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)

// trees lists the folders whose comments are counted together, each with its ceiling: the maximum
// number of these words per 1,000 words of comments. The original aim was 8; a well-written project
// of the field has 3. Lower a ceiling when a tree's density is below it by more than band.
var trees = []struct {
	name string
	has  func(file string) bool
	most float64
}{
	{"operator", func(file string) bool { return !isTest(file) && hasPrefix(file, operator) }, 3},
	{"sandbox", func(file string) bool { return !isTest(file) && hasPrefix(file, kit) && !hasPrefix(file, judges) }, 3},
	{"explore and fuzz", func(file string) bool { return !isTest(file) && hasPrefix(file, judges) }, 3},
	{"tests", isTest, 4},
}

// band is the distance from the density to the ceiling, which leaves room for new comments.
const band = 2.5

var (
	operator = []string{"api/", "cmd/", "internal/"}
	kit      = []string{"sandbox/client/", "sandbox/cmd/", "sandbox/internal/"}
	// judges lists the folders of the test kit that run an operator and judge its behavior.
	judges = []string{"sandbox/internal/explore/", "sandbox/internal/fuzz/"}
)

// isTest reports whether a file belongs to the repository's tests and tools.
func isTest(file string) bool {
	return strings.HasSuffix(file, "_test.go") || hasPrefix(file, []string{"test/", "sandbox/test/", "hack/", "sandbox/hack/"})
}

func TestCommentsNameTheirThing(t *testing.T) {
	for _, tree := range trees {
		ours := func(file string) bool { return strings.HasSuffix(file, ".go") && tree.has(file) }
		words, density := densityOf(t, ours, func(file string, source []byte) []byte {
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			return proseOfGo(source, set, parsed)[0]
		})
		switch {
		case words < 10_000:
			t.Errorf("%s: %d words in comments: the tree is not found", tree.name, words)
		case density > tree.most:
			t.Errorf("%s: %.1f of 1,000 words in comments are in place of nouns (%s), want at most %.1f: name the thing", tree.name, density, inPlaceOfNouns, tree.most)
		case density < tree.most-band:
			t.Errorf("%s: %.1f of 1,000 words in comments are in place of nouns, less than the %.1f that are allowed: lower the ceiling", tree.name, density, tree.most)
		}
	}
}

// densityOf returns the number of words in the wanted files' prose, and the number of
// inPlaceOfNouns words per 1,000 words.
func densityOf(t *testing.T, wanted func(file string) bool, prose func(file string, source []byte) []byte) (words int, density float64) {
	t.Helper()
	found := 0
	for file, source := range contents(t, func(file string) bool { return wanted(file) && !isExempt(file) }) {
		text := prose(file, source)
		words += len(word.FindAll(text, -1))
		found += len(inPlaceOfNouns.FindAll(text, -1))
	}
	return words, 1000 * float64(found) / float64(max(words, 1))
}
