// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs contains the documentation and tests that keep it correct.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".."

// kit is the folder of the test kit, whose pages are also part of the documentation.
const kit = "sandbox"

// pages returns the content of each Markdown page in the repository, keyed by its path from the
// root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	result := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		page, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		result[page] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// testFunctions returns the names of the repository's tests, fuzz tests and benchmarks.
func testFunctions(t *testing.T) []string {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range function.FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestNamedTestsExist checks that every test named in a page exists. A name that ends with … stands
// for all tests with this prefix.
func TestNamedTestsExist(t *testing.T) {
	functions := testFunctions(t)
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*…?)`")
	found := 0
	for page, text := range pages(t) {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			found++
			prefix, all := strings.CutSuffix(match[1], "…")
			if !slices.ContainsFunc(functions, func(f string) bool { return f == match[1] || all && strings.HasPrefix(f, prefix) }) {
				t.Errorf("%s names %s, which is not there", page, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no page names a test")
	}
}

// TestNamedFilesExist checks that every file exists that a page links to or names by its path from
// the root. A page of the test kit may also name a file by its path from the kit's folder.
func TestNamedFilesExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	path := regexp.MustCompile("`((?:api|charts|cmd|config|docs|hack|internal|sandbox|test)/[\\w./-]*[\\w/])`")
	code := regexp.MustCompile("`[^`]*`")
	for page, text := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			}
		}
		for _, match := range path.FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(filepath.Join(root, match[1]))
			if err != nil && strings.HasPrefix(page, kit+"/") {
				_, err = os.Stat(filepath.Join(root, kit, match[1]))
			}
			if err != nil {
				t.Errorf("%s names %s: %v", page, match[1], err)
			}
		}
	}
}

// TestOriginsAreComplete checks that test/origins.md has every row, and that each row names a test.
func TestOriginsAreComplete(t *testing.T) {
	text, err := os.ReadFile("../test/origins.md")
	if err != nil {
		t.Fatal(err)
	}
	for row, last := range map[int]int{0: 10, 1: 0, 2: 9, 3: 0, 4: 12} {
		for n := range max(1, last) {
			name := fmt.Sprintf("S%d", row)
			if last > 0 {
				name = fmt.Sprintf("S%d.%d", row, n+1)
			}
			lines := regexp.MustCompile(`(?m)^\| `+regexp.QuoteMeta(name)+` \|.*$`).FindAllString(string(text), -1)
			if len(lines) > 1 {
				t.Errorf("the row %s is there %d times", name, len(lines))
			}
			line := strings.Join(lines, "\n")
			if cells := strings.Split(line, "|"); len(cells) != 7 {
				t.Errorf("the row %s is not there, or is not complete: %q", name, line)
			} else if !strings.Contains(cells[4], "`Test") {
				t.Errorf("the row %s names no test: %q", name, line)
			}
		}
	}
}

// TestGlossaryIsShort checks that the glossary explains at most 30 words, each of them once, and that
// comments or pages use them.
func TestGlossaryIsShort(t *testing.T) {
	page := pages(t)["docs/glossary.md"]
	var words []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \|$`).FindAllStringSubmatch(page, -1) {
		if row[1] != "word" {
			words = append(words, strings.Split(row[1], ", ")...)
		}
	}
	if len(words) < 20 || len(words) > 30 {
		t.Errorf("the glossary has %d words, want 20 to 30: use a word that Kubernetes' users know, or have known", len(words))
	}
	if sorted := slices.Sorted(slices.Values(words)); len(slices.Compact(slices.Clone(sorted))) != len(words) {
		t.Errorf("the glossary has a word twice: %q", sorted)
	}
	prose := strings.Builder{}
	for name, text := range pages(t) {
		if name != "docs/glossary.md" {
			prose.WriteString(strings.ToLower(text))
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		prose.WriteString(strings.ToLower(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		if !strings.Contains(prose.String(), strings.ToLower(word)) {
			t.Errorf("neither a page nor a comment uses %q: remove it from the glossary", word)
		}
	}
}
