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

// maxCell is the maximum number of characters in a table cell. Longer content belongs in a
// paragraph.
const maxCell = 200

// wholePages lists the pages, and folders with pages, that users and contributors read. Other
// pages, such as notes next to tests, are not checked.
var wholePages = []string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/", "sandbox/README.md", "sandbox/docs/"}

// vague matches a heading that contains no noun for which readers would search: it begins with a
// question word or a preposition of time, is a single adverb, or contains a pronoun.
var vague = regexp.MustCompile(`(?i)^(?:what|where|when|until|after|before)\b|^(?:once|now|order|measured)$|\b(?:it|its|them|they|those)\b`)

// exact matches headings that are allowed even if vague matches them: a convention of task pages,
// and titles for which readers search.
var exact = regexp.MustCompile(`^(?:Before you begin|What is lost with a node or zone|Where to read on|Try it)$`)

var (
	pageHeading = regexp.MustCompile(`^#+ +(.*?)\s*$`)
	cellBreak   = regexp.MustCompile(`(?:^|[^\\])\|`)
)

// checkPage returns the findings about a page's long table cells and vague headings.
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
