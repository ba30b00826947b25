// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxCell is the most characters of a cell of a table: a longer text is a paragraph.
const maxCell = 200

// wholePages are the pages that users and contributors read. Notes beside tests are not checked.
var wholePages = []string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/", "sandbox/README.md", "sandbox/docs/"}

// vague is a heading without a noun that readers would search for: one that begins with a
// question word or a preposition of time, or is a single adverb, or has a pronoun.
var vague = regexp.MustCompile(`(?i)^(?:what|where|when|until|after|before)\b|^(?:once|now|order|measured)$|\b(?:it|its|them|they|those)\b`)

// exact are headings that are clear all the same: a convention of tasks, and titles that readers type.
var exact = regexp.MustCompile(`^(?:Before you begin|What is lost with a node or zone|Where to read on|Try it)$`)

var (
	pageHeading = regexp.MustCompile(`^#+ +(.*?)\s*$`)
	cellBreak   = regexp.MustCompile(`(?:^|[^\\])\|`)
)

// checkPage returns the long cells and the vague headings of a page.
func checkPage(file string, source []byte) []finding {
	if !hasPrefix(file, wholePages) {
		return nil
	}
	var findings []finding
	fenced := false
	number := 0
	for line := range bytes.Lines(source) {
		number++
		text := strings.TrimSpace(string(line))
		switch {
		case strings.HasPrefix(text, "```"):
			fenced = !fenced
		case fenced:
		case strings.HasPrefix(text, "|"):
			for _, cell := range cellBreak.Split(text, -1) {
				if n := utf8.RuneCountInString(strings.TrimSpace(cell)); n > maxCell {
					findings = append(findings, finding{file, number, string([]rune(cell)[:40]) + "…", fmt.Sprintf("a paragraph: the cell has %d characters, at most %d", n, maxCell)})
				}
			}
		default:
			if match := pageHeading.FindStringSubmatch(text); match != nil && vague.MatchString(match[1]) && !exact.MatchString(match[1]) {
				findings = append(findings, finding{file, number, match[1], "a heading that names its thing with a noun that readers search for"})
			}
		}
	}
	return findings
}
