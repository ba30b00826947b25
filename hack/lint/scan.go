// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A finding is a problem at a line of a file: a phrase that is not used, a sleep in a test, or a
// cell or heading of a page.
type finding struct {
	file string
	line int
	text string
	say  string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: write %s", f.file, f.line, f.text, f.say)
}

// check returns a file's findings, sorted by line: phrases in its prose, sleeps if it is a test,
// and long cells and vague headings if it is a page. Files of unknown types are treated as files
// without prose.
func check(file string, source []byte) ([]finding, error) {
	var prose [][]byte // each as long as source, with spaces in place of all other text
	var findings []finding
	switch {
	case strings.HasSuffix(file, ".go"):
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		prose, findings = proseOfGo(source, files, parsed), sleepsOf(file, files, parsed)
	case strings.HasSuffix(file, ".md"):
		prose, findings = [][]byte{proseOfMarkdown(source)}, checkPage(file, source)
	case strings.HasSuffix(file, ".yaml"), strings.HasSuffix(file, ".yml"), strings.HasSuffix(file, ".txt"),
		strings.HasSuffix(file, ".sh"), filepath.Base(file) == "Makefile", filepath.Base(file) == "Dockerfile":
		prose = [][]byte{bytes.ReplaceAll(source, []byte("#"), []byte(" "))}
	}
	for _, text := range prose {
		findings = append(findings, checkProse(file, text)...)
	}
	slices.SortStableFunc(findings, func(a, b finding) int { return a.line - b.line })
	return findings, nil
}

func checkProse(file string, text []byte) []finding {
	var findings []finding
	add := func(from, to int, say string) {
		findings = append(findings, finding{
			file: file,
			line: 1 + bytes.Count(text[:from], []byte("\n")),
			text: strings.Join(strings.Fields(string(text[from:to])), " "),
			say:  say,
		})
	}
	for _, c := range list {
		for _, at := range c.find.FindAllIndex(text, -1) {
			if c.except == nil || !c.except.Match(text[at[0]:]) {
				add(at[0], at[1], c.say)
			}
		}
	}
	for _, at := range startsWithWho.FindAllSubmatchIndex(text, -1) {
		if at[2] == at[3] {
			add(at[0], at[0]+len("Who"), `a subject that one can name: "Clients that"`)
		}
	}
	return findings
}

// proseOfGo returns the comments and the string literals of a Go file, each at its original offset.
func proseOfGo(source []byte, files *token.FileSet, parsed *ast.File) [][]byte {
	at := func(p token.Pos) int { return files.Position(p).Offset }

	comments := blank(source)
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "//nolint") {
				continue
			}
			from, to := at(c.Pos()), at(c.End())
			copy(comments[from:to], source[from:to])
			comments[from], comments[from+1] = ' ', ' '
		}
	}
	literals := blank(source)
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // struct tags are not prose
			return n.Tag == nil
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.Contains(n.Value, " ") {
				from, to := at(n.Pos()), at(n.End())
				copy(literals[from:to], source[from:to])
			}
		}
		return true
	})
	return [][]byte{comments, literals}
}

var (
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\([^)\n]*\)`)
)

// proseOfMarkdown returns the text of a page, with fenced blocks, code spans and link targets blanked.
func proseOfMarkdown(source []byte) []byte {
	prose := blank(source)
	fenced := false
	offset := 0
	for line := range bytes.Lines(source) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")) {
			fenced = !fenced
		} else if !fenced {
			copy(prose[offset:], line)
		}
		offset += len(line)
	}
	for _, code := range []*regexp.Regexp{codeSpan, link} {
		for _, at := range code.FindAllIndex(prose, -1) {
			copy(prose[at[0]:at[1]], blank(prose[at[0]:at[1]]))
		}
	}
	return prose
}

// blank returns a copy of source text in which all bytes except line ends are replaced by spaces.
func blank(text []byte) []byte {
	blanked := bytes.Repeat([]byte(" "), len(text))
	for i, b := range text {
		if b == '\n' {
			blanked[i] = b
		}
	}
	return blanked
}
