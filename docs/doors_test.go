// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// maxDoorLines is the maximum number of lines in a product's README, which is only an entrance with
// links to the other pages.
const maxDoorLines = 120

// TestDoors checks that each product's README is short, that the operator's README contains the two
// commands that work on a new machine, and that links lead from the operator's README to every
// page.
func TestDoors(t *testing.T) {
	all := pages(t)
	for _, door := range []string{"README.md", kit + "/README.md"} {
		if lines := strings.Count(all[door], "\n"); lines > maxDoorLines || lines == 0 {
			t.Errorf("%s has %d lines, want at most %d", door, lines, maxDoorLines)
		}
	}
	for _, command := range []string{"make demo ", "make test "} {
		if !strings.Contains(all["README.md"], "\n"+command) {
			t.Errorf("the README does not have the command %q", command)
		}
	}
	if !strings.Contains(all["README.md"], "]("+kit+"/README.md)") {
		t.Error("the README does not lead to the kit")
	}
	reached := map[string]bool{}
	var follow func(page string)
	follow = func(page string) {
		if reached[page] {
			return
		}
		reached[page] = true
		for _, target := range targets(page, all[page]) {
			follow(target)
		}
	}
	follow("README.md")
	for page := range all {
		// A link to a folder counts as a link to each of its pages.
		if !reached[page] && !reached[filepath.Dir(page)] {
			t.Errorf("no links lead from the README to %s", page)
		}
	}
}

var pageLink = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)

// targets returns the files to which a page links, as paths from the root.
func targets(page, text string) []string {
	var files []string
	for _, match := range pageLink.FindAllStringSubmatch(text, -1) {
		if match[1] != "" {
			files = append(files, filepath.Join(filepath.Dir(page), match[1]))
		}
	}
	return files
}

// TestLinkedHeadingsExist checks that every heading to which a link refers exists.
func TestLinkedHeadingsExist(t *testing.T) {
	all := pages(t)
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	found := 0
	for page, text := range all {
		for _, match := range pageLink.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if match[2] == "" {
				continue
			}
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			if filepath.Ext(target) != ".md" {
				continue
			}
			found++
			if !slices.Contains(anchors(all[target]), match[2]) {
				t.Errorf("%s links to the heading #%s, which %s does not have", page, match[2], target)
			}
		}
	}
	if found == 0 {
		t.Error("no page links to a heading")
	}
}

var (
	block      = regexp.MustCompile("(?ms)^```.*?^```")
	heading    = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInNames = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors of a page's headings: lower case, with hyphens for spaces and without
// punctuation, and with a number if several headings have the same name.
func anchors(text string) []string {
	var names []string
	seen := map[string]int{}
	for _, match := range heading.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		name := strings.ReplaceAll(notInNames.ReplaceAllString(strings.ToLower(linkText.ReplaceAllString(match[1], "$1")), ""), " ", "-")
		seen[name]++
		if n := seen[name]; n > 1 {
			name += "-" + strconv.Itoa(n-1)
		}
		names = append(names, name)
	}
	return names
}

func TestAnchors(t *testing.T) {
	got := anchors("# The `kubectl tide`, as found\n```\n# no heading\n```\n## [Once](a.md)\n### Once\n")
	if want := []string{"the-kubectl-tide-as-found", "once", "once-1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
