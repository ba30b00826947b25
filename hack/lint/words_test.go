// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPhrases(t *testing.T) {
	for _, p := range phrases {
		t.Run(p.pattern, func(t *testing.T) {
			only := compile([]phrase{p})[0]
			finds := func(text string) bool {
				at := only.find.FindStringIndex(text)
				return at != nil && (only.except == nil || !only.except.MatchString(text[at[0]:]))
			}
			if !finds(p.example) {
				t.Errorf("does not find %q", p.example)
			}
			if finds(p.fine) {
				t.Errorf("finds %q", p.fine)
			}
			if p.say == "" {
				t.Error("does not say what to write instead")
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name, file, source string
		want               []string
	}{
		{
			name: "comments and strings of Go, not names and tags",
			file: "a.go",
			source: "// Package a\npackage a\n\n// anew is made\n// anew.\nvar anew = \"it is anew\"\n\ntype t struct {\n" +
				"\tf string `json:\"anew x\"` // Anew.\n}\n",
			want: []string{"a.go:4", "a.go:5", "a.go:6", "a.go:9"},
		},
		{
			name:   "across a line break of a comment, counted from where it begins",
			file:   "a.go",
			source: "package a\n\n// The pool is\n// told.\nvar x int\n",
			want:   []string{"a.go:3"},
		},
		{
			name:   "Markdown without code and targets of links",
			file:   "a.md",
			source: "# Made anew\n\n```\nanew\n```\n`anew` [b](anew.md) for\never\n",
			want:   []string{"a.md:1", "a.md:6"},
		},
		{
			name:   "Who as a subject, and in a question",
			file:   "a.md",
			source: "Who asks gets it. Who may patch nodes?\n\nSomeone who asks.\n",
			want:   []string{"a.md:1"},
		},
		{name: "YAML", file: "a.yaml", source: "a: b # set anew\n", want: []string{"a.yaml:1"}},
		{name: "no prose", file: "a.png", source: "anew", want: nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			findings, err := check(test.file, []byte(test.source))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings {
				got = append(got, strings.Join(strings.SplitN(f.String(), ":", 3)[:2], ":"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestRun checks that the linter finds a phrase in an untracked file, and that it skips exempt
// files.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"new/a.md":              "It is made anew.\n",
		"docs/reference/api.md": "It is made anew.\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	var out bytes.Buffer
	found, err := run(dir, nil, &out)
	if err != nil {
		t.Fatal(err)
	}
	if found != 1 || !strings.HasPrefix(out.String(), `new/a.md:1: "anew": write "again"`) {
		t.Errorf("found %d:\n%s", found, out.String())
	}
}

// TestPathsExist checks that every path in exempt exists.
func TestPathsExist(t *testing.T) {
	for _, path := range exempt {
		if matches, _ := filepath.Glob(filepath.Join("..", "..", path) + "*"); len(matches) == 0 {
			t.Errorf("%s does not exist", path)
		}
	}
}
