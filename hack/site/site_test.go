// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const repository = "../.."

// built renders this repository's site. It returns the site's folder and its pages.
func built(t *testing.T) (string, map[string]*page) {
	t.Helper()
	pages, err := load(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := write(pages, os.DirFS(repository), "v1.2.3", folder); err != nil {
		t.Fatal(err)
	}
	return folder, pages
}

var (
	attribute = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	idOf      = regexp.MustCompile(` id="([^"]*)"`)
	// loaded matches an element that makes a browser load something from another host.
	loaded = regexp.MustCompile(`<(?:link|script|img|iframe|source)[^>]*(?:href|src)="(?:[a-z]+:)?//`)
)

// TestSite checks that all links within the site lead to existing files and headings, that each
// page shows the version, and that nothing is loaded from other hosts. The site must work offline,
// from a folder.
func TestSite(t *testing.T) {
	folder, pages := built(t)
	for _, p := range pages {
		html := read(t, folder, p.address())
		if !strings.Contains(html, "Tidekeeper v1.2.3") {
			t.Errorf("%s does not say the version", p.address())
		}
		if found := loaded.FindString(html); found != "" {
			t.Errorf("%s loads something from elsewhere: %s", p.address(), found)
		}
		_, main, _ := strings.Cut(html, "<main>")
		if p.title == "" || !strings.Contains(main, "<h1") {
			t.Errorf("%s has no heading", p.address())
		}
		for _, match := range attribute.FindAllStringSubmatch(html, -1) {
			checkLink(t, folder, p, match[1])
		}
	}
}

func checkLink(t *testing.T, folder string, p *page, link string) {
	t.Helper()
	if strings.HasPrefix(link, "https://") {
		return
	}
	file, anchor, _ := strings.Cut(link, "#")
	if file == "" {
		file = filepath.Base(p.address())
	}
	target := filepath.Join(folder, filepath.Dir(p.address()), file)
	html, err := os.ReadFile(target)
	if err != nil {
		t.Errorf("%s links to %s: %v", p.address(), link, err)
		return
	}
	hasAnchor := slices.ContainsFunc(idOf.FindAllStringSubmatch(string(html), -1), func(m []string) bool { return m[1] == anchor })
	if anchor != "" && !hasAnchor {
		t.Errorf("%s links to %s, whose page does not have that heading", p.address(), link)
	}
}

// TestSearchIndex checks that the search index contains every section of every page, with addresses
// that exist in the site.
func TestSearchIndex(t *testing.T) {
	folder, pages := built(t)
	text := strings.TrimSuffix(strings.TrimPrefix(read(t, folder, "index.js"), "const sections = "), ";\n")
	var entries []entry
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		t.Fatal(err)
	}
	indexed := map[string]int{}
	for _, e := range entries {
		address, _, _ := strings.Cut(e.Address, "#")
		indexed[address]++
	}
	for _, p := range pages {
		if indexed[p.address()] != len(p.anchors) || len(p.anchors) == 0 {
			t.Errorf("%s has %d sections, and the search %d of them", p.address(), len(p.anchors), indexed[p.address()])
		}
	}
	if !slices.ContainsFunc(entries, func(e entry) bool { return strings.Contains(e.Text, "kubectl tide pools fit") }) {
		t.Error("the search does not find commands")
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLinks checks that a link to a missing target is an error, and that a link to a source file is
// replaced by its text.
func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		name, readme, fails, has string
	}{
		{"a page", "# A\n\n[b](docs/b.md#two-words)\n", "", `<a href="docs/b.html#two-words">b</a>`},
		{"a folder", "# A\n\n[docs](docs)\n", "", `<a href="docs/b.html">docs</a>`},
		{"a source file", "# A\n\nin [c](docs/c.go).\n", "", "<p>in c.</p>"},
		{"elsewhere", "# A\n\n[e](https://example.com)\n", "", `<a href="https://example.com">e</a>`},
		{"no such page", "# A\n\n[x](docs/x.md)\n", "README.md links to docs/x.md", ""},
		{"no such heading", "# A\n\n[b](docs/b.md#three)\n", "README.md links to the heading #three", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{
				"README.md": {Data: []byte(tt.readme)}, "docs/b.md": {Data: []byte("# B\n\n## Two words\n")}, "docs/c.go": {Data: []byte("package c\n")},
			}
			folder := t.TempDir()
			pages, err := load(root)
			if err == nil {
				err = write(pages, root, "v0", folder)
			}
			switch {
			case tt.fails != "":
				if err == nil || !strings.HasPrefix(err.Error(), tt.fails) {
					t.Errorf("got %v, want %q", err, tt.fails)
				}
			case err != nil:
				t.Error(err)
			case !strings.Contains(read(t, folder, "README.html"), tt.has):
				t.Errorf("no %s in\n%s", tt.has, read(t, folder, "README.html"))
			}
		})
	}
}
