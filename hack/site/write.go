// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

//go:embed look
var look embed.FS

var layout = template.Must(template.ParseFS(look, "look/page.html"))

// group is a group of links in the site's menu.
type group struct {
	Title string
	Links []menuLink
}

type menuLink struct {
	Title, Address string
	Here           bool
}

// write renders the pages into a folder. It also writes the pages' images and the search index.
func write(pages map[string]*page, root fs.FS, version, folder string) error {
	files := slices.Sorted(maps.Keys(pages))
	images := map[string]bool{}
	for _, file := range files {
		p := pages[file]
		shown, err := relink(p, pages)
		if err != nil {
			return err
		}
		for _, image := range shown {
			images[image] = true
		}
		var body, out bytes.Buffer
		if err := markdown.Renderer().Render(&body, p.source, p.tree); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		up := strings.Repeat("../", strings.Count(file, "/"))
		if err := layout.Execute(&out, map[string]any{
			"Title": p.title, "Version": version, "Up": up, "Menu": menu(pages, p), "Body": template.HTML(body.String()),
		}); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := put(folder, p.address(), out.Bytes()); err != nil {
			return err
		}
	}
	index, err := searchIndex(pages, files)
	if err != nil {
		return err
	}
	if err := put(folder, "index.js", index); err != nil {
		return err
	}
	for _, name := range []string{"style.css", "search.js"} {
		if err := copyFile(look, "look/"+name, folder, name); err != nil {
			return err
		}
	}
	for image := range images {
		if err := copyFile(root, image, folder, image); err != nil {
			return err
		}
	}
	return nil
}

// relink rewrites a page's links so that they work in the site, and returns the paths of the page's
// images. It replaces a link to a file without a page by the link's text.
func relink(p *page, pages map[string]*page) (images []string, err error) {
	for _, link := range links(p.tree) {
		target, anchor, local := resolve(p.file, string(link.Destination))
		if !local {
			continue
		}
		to := pages[target]
		if to == nil {
			to = first(pages, target)
		}
		if to == nil {
			unlink(link)
			continue
		}
		if anchor != "" {
			if !slices.Contains(to.anchors, anchor) {
				return nil, fmt.Errorf("%s links to the heading #%s, which %s does not have", p.file, anchor, target)
			}
			anchor = "#" + anchor
		}
		relative, err := filepath.Rel(path.Dir(p.file), to.address())
		if err != nil {
			return nil, err
		}
		link.Destination = []byte(filepath.ToSlash(relative) + anchor)
	}
	err = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if image, ok := n.(*ast.Image); ok && entering {
			images = append(images, path.Join(path.Dir(p.file), string(image.Destination)))
		}
		return ast.WalkContinue, nil
	})
	return images, err
}

// first returns the page to which a link to a folder leads: the folder's README or, if it has none,
// its first page.
func first(pages map[string]*page, folder string) *page {
	if p := pages[path.Join(folder, "README.md")]; p != nil {
		return p
	}
	for _, file := range slices.Sorted(maps.Keys(pages)) {
		if path.Dir(file) == folder {
			return pages[file]
		}
	}
	return nil
}

// unlink replaces a link by its text.
func unlink(link *ast.Link) {
	parent := link.Parent()
	for child := link.FirstChild(); child != nil; {
		next := child.NextSibling()
		parent.InsertBefore(parent, link, child)
		child = next
	}
	parent.RemoveChild(parent, link)
}

// menu returns the menu's groups, with addresses relative to the page here.
func menu(pages map[string]*page, here *page) []group {
	var all []group
	for _, g := range groups {
		one := group{Title: g.title}
		for _, file := range slices.Sorted(maps.Keys(pages)) {
			if groupOf(file) != g.title {
				continue
			}
			relative, err := filepath.Rel(path.Dir(here.file), htmlOf(file))
			if err != nil {
				continue
			}
			one.Links = append(one.Links, menuLink{pages[file].title, filepath.ToSlash(relative), file == here.file})
		}
		if len(one.Links) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// entry is a page's section in the search index.
type entry struct {
	Page    string `json:"page"`
	Title   string `json:"title"`
	Address string `json:"address"`
	Text    string `json:"text"`
}

// searchIndex returns a script that defines all sections. The index is a script because a page
// opened from disk may load scripts, but not read other files.
func searchIndex(pages map[string]*page, files []string) ([]byte, error) {
	var entries []entry
	for _, file := range files {
		p := pages[file]
		for _, s := range p.sections {
			entries = append(entries, entry{p.title, s.title, p.address() + "#" + s.anchor, s.text})
		}
	}
	text, err := json.Marshal(entries)
	return slices.Concat([]byte("const sections = "), text, []byte(";\n")), err
}

func copyFile(from fs.FS, name, folder, to string) error {
	text, err := fs.ReadFile(from, name)
	if err != nil {
		return err
	}
	return put(folder, to, text)
}

func put(folder, name string, text []byte) error {
	file := filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
