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

// page is a parsed Markdown file.
type page struct {
	// file is the page's path from the root of the repository. source is its Markdown source.
	file   string
	source []byte
	tree   ast.Node
	// title is the page's first heading. anchors lists the anchors of all its headings.
	title    string
	anchors  []string
	sections []section
}

// section is a heading with the text up to the next heading. The search finds sections.
type section struct {
	title, anchor, text string
}

// address returns the path of the page's HTML file within the site.
func (p *page) address() string { return htmlOf(p.file) }

func htmlOf(file string) string { return strings.TrimSuffix(file, ".md") + ".html" }

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// load returns README.md and all pages to which links lead from there, keyed by path.
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

// markdownIn returns the pages that belong to a link's target: the target itself or, if it is a
// folder, the pages in it.
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

// plain returns a Markdown node's text without markup.
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

// resolve splits a link's destination into its target, as a path from the root, and its anchor.
// local is false if the link leads out of the repository.
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

// groups lists the menu's groups in order, with their folders.
var groups = []struct{ title, folder string }{
	{"Tidekeeper", "."}, {"Concepts", "docs/concepts"}, {"Tasks", "docs/tasks"}, {"Reference", "docs/reference"},
	{"Runbooks", "docs/runbooks"}, {"Project", "docs"}, {"Test kit", "sandbox"}, {"Evidence", ""},
}

// groupOf returns the title of the page's menu group: the group of the nearest folder above the
// page.
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
