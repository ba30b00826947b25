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

// A comment names its thing by a noun that one can search for. These words take the place of nouns:
// "what is kept of those that are made from bytes" is "the shared part of records built from
// protobuf". Their number is a thermometer, and not the cure.
var inPlaceOfNouns = regexp.MustCompile(`(?i)\b(?:what|those|one|ones)\b`)

var word = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)

// ceilings are the most of these words among 1,000 words of the comments of a tree. The aim is 8;
// a well-written project of the field has 3. Lower a ceiling whenever it can be lowered.
var ceilings = []struct {
	folders, but []string
	most         float64
}{
	{[]string{"api/", "cmd/", "internal/"}, nil, 2},
	{[]string{"sandbox/client/", "sandbox/cmd/", "sandbox/internal/"}, judges, 1.7},
	{judges, nil, 1},
}

// judges are the parts of the kit that play an operator and judge it.
var judges = []string{"sandbox/internal/explore/", "sandbox/internal/fuzz/"}

func TestCommentsNameTheirThing(t *testing.T) {
	for _, c := range ceilings {
		ours := func(file string) bool {
			return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && hasPrefix(file, c.folders) && !hasPrefix(file, c.but)
		}
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
			t.Errorf("%v: %d words in comments: the tree is not found", c.folders, words)
		case density > c.most:
			t.Errorf("%v: %.1f of 1,000 words in comments are in place of nouns (%s), want at most %.1f: name the thing", c.folders, density, inPlaceOfNouns, c.most)
		case density < c.most-1:
			t.Errorf("%v: %.1f of 1,000 words in comments are in place of nouns, less than the %.1f that are allowed: lower the ceiling", c.folders, density, c.most)
		}
	}
}

// densityOf counts the words in the prose of the wanted files, and how many of 1,000 are in place of nouns.
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
