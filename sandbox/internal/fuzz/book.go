// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Played is an edit, or a sequence of them, that was played.
type Played struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Outcome outcome `json:"outcome,omitempty"`
	Found   bool    `json:"found"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

// Files of a directory of results.
const (
	aboutFile  = "fuzz.json"
	playedFile = "played.jsonl"
)

// book keeps what was played in a directory, so that what was interrupted goes on.
type book struct {
	dir      string
	file     *os.File
	played   []Played
	findings []*Finding
}

// openBook opens the book of a directory, which must be about the same.
func openBook(f *Fuzzer) (*book, error) {
	b := &book{dir: f.Explorer.Dir}
	about, err := json.MarshalIndent(map[string]any{
		"command": f.Explorer.Command, "install": f.Explorer.Workload.Install, "object": f.Sample, "others": f.Others, "ignore": f.Ignore,
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, aboutFile)
	known, err := os.ReadFile(filepath.Clean(file))
	switch {
	case err == nil && string(known) != string(about):
		return nil, fmt.Errorf("--dir %s has the results of another object or operator: give another, or remove it", b.dir)
	case err == nil:
		if b.played, b.findings, err = readBook(b.dir); err != nil {
			return nil, err
		}
	case errors.Is(err, os.ErrNotExist):
		if err := os.WriteFile(file, about, 0o600); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	b.file, err = os.OpenFile(filepath.Join(b.dir, playedFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return b, err
}

// readBook reads what was played, and what was found.
func readBook(dir string) ([]Played, []*Finding, error) {
	var played []Played
	text, err := os.ReadFile(filepath.Join(dir, playedFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	for line := range strings.Lines(string(text)) {
		var p Played
		if json.Unmarshal([]byte(line), &p) == nil { // The last line may be half a one.
			played = append(played, p)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "finding-*.yaml"))
	if err != nil {
		return nil, nil, err
	}
	var findings []*Finding
	for _, file := range files {
		f, err := ReadFinding(file)
		if err != nil {
			return nil, nil, err
		}
		findings = append(findings, f)
	}
	return played, findings, nil
}

func (b *book) note(p Played) error {
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = b.file.Write(append(line, '\n'))
	return err
}

func (b *book) found(f *Finding) error { return f.save(b.dir) }

func (b *book) close() { _ = b.file.Close() }

// IsResult reports whether a directory has the results of this package.
func IsResult(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, aboutFile))
	return err == nil
}

// Merge reads the results of several directories as one.
func Merge(dirs []string) (*Result, error) {
	r := &Result{}
	seen := map[string]bool{}
	for _, dir := range dirs {
		if !IsResult(dir) {
			return nil, fmt.Errorf("%s has no results of sandbox fuzz, as another directory has", dir)
		}
		played, findings, err := readBook(dir)
		if err != nil {
			return nil, err
		}
		for _, p := range played {
			if !seen[p.ID] {
				seen[p.ID] = true
				r.Played = append(r.Played, p)
			}
		}
		r.Findings = append(r.Findings, findings...)
	}
	r.Planned = len(r.Played)
	return r, nil
}
