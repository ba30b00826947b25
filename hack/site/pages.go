// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// page is a Markdown file.
type page struct {
	// file is its path from the root of the repository, and source its text.
	file   string
	source []byte
	tree   ast.Node
	// title is its first heading, and anchors the names of all of them.
	title    string
	anchors  []string
	sections []section
}

// section is a heading and the text until the next one: a result of the search.
type section struct {
	title, anchor, text string
}

// address returns the file of the site that has the page.
func (p *page) address() string { return htmlOf(p.file) }

func htmlOf(file string) string { return strings.TrimSuffix(file, ".md") + ".html" }

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// load returns README.md and all pages that links lead to from there, by their files.
func load(root fs.FS) (map[string]*page, error) {
	pages := map[string]*page{}
	queue := []string{"README.md"}
	for len(queue) > 0 {
		file := queue[0]
		queue = queue[1:]
		if pages[file] != nil {
			continue
		}
		source, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, err
		}
		p := parse(file, source)
		pages[file] = p
		for _, link := range links(p.tree) {
			target, _, local := resolve(file, string(link.Destination))
			if !local {
				continue
			}
			found, err := markdownIn(root, target)
			if err != nil {
				return nil, fmt.Errorf("%s links to %s: %w", file, link.Destination, err)
			}
			queue = append(queue, found...)
		}
	}
	return pages, nil
}

// markdownIn returns the pages that a link to a file or a folder leads to.
func markdownIn(root fs.FS, target string) ([]string, error) {
	info, err := fs.Stat(root, target)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return fs.Glob(root, path.Join(target, "*.md"))
	case path.Ext(target) == ".md":
		return []string{target}, nil
	}
	return nil, nil
}

func parse(file string, source []byte) *page {
	p := &page{file: file, source: source, tree: markdown.Parser().Parse(text.NewReader(source))}
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		heading, ok := n.(*ast.Heading)
		if !ok {
			if len(p.sections) > 0 {
				last := &p.sections[len(p.sections)-1]
				last.text = strings.TrimSpace(last.text + " " + plain(n, source))
			}
			continue
		}
		id, _ := heading.AttributeString("id")
		anchor, _ := id.([]byte)
		title := plain(heading, source)
		if p.title == "" {
			p.title = title
		}
		p.anchors = append(p.anchors, string(anchor))
		p.sections = append(p.sections, section{title: title, anchor: string(anchor)})
	}
	return p
}

// plain returns the text of a node without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case !entering:
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		case n.Kind() == ast.KindText:
			t := n.(*ast.Text)
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case n.Kind() == ast.KindCodeBlock || n.Kind() == ast.KindFencedCodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				b.Write(line.Value(source))
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

func links(tree ast.Node) []*ast.Link {
	var all []*ast.Link
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			all = append(all, link)
		}
		return ast.WalkContinue, nil
	})
	return all
}

// resolve returns the file from the root that a link of a page is about, and the heading; local is
// false for a link that leaves the repository.
func resolve(file, destination string) (target, anchor string, local bool) {
	if strings.Contains(destination, ":") {
		return "", "", false
	}
	target, anchor, _ = strings.Cut(destination, "#")
	if target == "" {
		return file, anchor, true
	}
	return path.Join(path.Dir(file), target), anchor, true
}

// groups are the folders in the order of the menu.
var groups = []struct{ title, folder string }{
	{"Tidekeeper", "."}, {"Concepts", "docs/concepts"}, {"Tasks", "docs/tasks"}, {"Reference", "docs/reference"},
	{"Runbooks", "docs/runbooks"}, {"Project", "docs"}, {"Test kit", "sandbox"}, {"Evidence", ""},
}

// groupOf returns the group of a page: that of its folder, or of the nearest folder above it.
func groupOf(file string) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if dir == "." && path.Dir(file) != "." {
			return "Evidence"
		}
		if i := slices.IndexFunc(groups, func(g struct{ title, folder string }) bool { return g.folder == dir }); i >= 0 {
			return groups[i].title
		}
	}
}
