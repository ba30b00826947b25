// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/json"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Mistake is an edit of the manager's source code. Old occurs exactly once in the file, comments
// aside, and is replaced by New. If Old is empty, New is the content of a new file.
type Mistake struct{ File, Old, New string }

// Mistaken returns the content of the edited files with the mistakes applied, keyed by path.
func Mistaken(t testing.TB, mistakes ...Mistake) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, m := range mistakes {
		file := filepath.Join(Root(), m.File)
		if m.Old == "" {
			texts[file] = m.New
			continue
		}
		if _, ok := texts[file]; !ok {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = withoutComments(string(text))
		}
		old := withoutComments(m.Old)
		if strings.Count(texts[file], old) != 1 {
			t.Errorf("%s: the text to replace must occur exactly once:\n%s", m.File, old)
		}
		texts[file] = strings.Replace(texts[file], old, m.New, 1)
	}
	return texts
}

// withoutComments removes comments from Go source, and the lines that hold nothing else. Directives
// of the go command stay.
func withoutComments(source string) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, []byte(source), func(token.Position, string) {}, scanner.ScanComments)
	var kept strings.Builder
	end := 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			kept.WriteString(source[end:])
			return kept.String()
		}
		if tok != token.COMMENT || strings.HasPrefix(text, "//go:") {
			continue
		}
		start := file.Offset(pos)
		line := strings.LastIndexByte(source[:start], '\n') + 1
		next := start + len(text)
		if strings.TrimSpace(source[line:start]) == "" && strings.HasPrefix(source[next:], "\n") {
			start, next = max(line, end), next+1
		}
		kept.WriteString(source[end:start])
		end = next
	}
}

// BuildMistaken builds a manager with the mistakes applied, and returns its path. Tests use it to
// verify that they detect such mistakes. It does not change the source tree.
func BuildMistaken(t testing.TB, mistakes ...Mistake) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range Mistaken(t, mistakes...) {
		replaced := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replaced, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[file] = replaced
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return Build(t, "./cmd/tidekeeper", "-overlay", path)
}
