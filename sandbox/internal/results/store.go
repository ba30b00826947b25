// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// store reads the results directories of a tool, which is explore or fuzz.
type store[F Finding] struct {
	name, subject string
	parse         func(text []byte) (F, error)
}

// playedFile is the name of the file with a line of JSON for each completed case.
const playedFile = "played.jsonl"

// findingFiles is the glob pattern of the file names that File returns.
const findingFiles = "finding-*.yaml"

// aboutFile returns the path of the file that stores a directory's About.
func (s store[F]) aboutFile(dir string) string { return filepath.Join(dir, s.name+".json") }

// is reports whether a directory contains results of the store's tool.
func (s store[F]) is(dir string) bool {
	_, err := os.Stat(s.aboutFile(dir))
	return err == nil
}

// read reads a directory's completed cases and findings.
func (s store[F]) read(dir string) (*Result[F], error) {
	if !s.is(dir) {
		return nil, fmt.Errorf("%s has no results of sandbox %s", dir, s.name)
	}
	r := &Result[F]{}
	text, err := os.ReadFile(filepath.Join(dir, playedFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var p Played
		// Skip an incomplete last line, which a killed process may have left.
		if json.Unmarshal([]byte(line), &p) == nil {
			r.note(p)
		}
	}
	r.Findings, err = s.findings(dir)
	return r, err
}

// findings reads a directory's findings.
func (s store[F]) findings(dir string) ([]F, error) {
	files, err := filepath.Glob(filepath.Join(dir, findingFiles))
	if err != nil {
		return nil, err
	}
	var all []F
	for _, file := range files {
		f, err := s.finding(file)
		if err != nil {
			return nil, err
		}
		f.evidence().dir = dir
		all = append(all, f)
	}
	return all, nil
}

// finding reads a finding file.
func (s store[F]) finding(file string) (F, error) {
	var none F
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return none, err
	}
	f, err := s.parse(text)
	if err != nil {
		return none, fmt.Errorf("%s is not a finding of sandbox %s: %w", file, s.name, err)
	}
	return f, nil
}

// about reads a directory's About.
func (s store[F]) about(dir string) (*About, error) {
	file := s.aboutFile(dir)
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	about := &About{}
	if err := json.Unmarshal(text, about); err != nil {
		return nil, fmt.Errorf("%s is damaged: play again in another directory", file)
	}
	return about, nil
}

// resume reads a directory's results into a book. If an input has changed, it moves the findings to
// earlierDir, so that their cases are run first. It returns an error if the results belong to
// another command or other input files.
func (s store[F]) resume(b *Book[F], about About) error {
	before, err := s.about(b.dir)
	if err != nil {
		before = &About{} // Another version of the tool may have written the file in another format.
	}
	if b.Result, err = s.read(b.dir); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(b.dir, playedFile)); err == nil && len(b.Played) > 0 {
		b.last = info.ModTime()
	}
	if used := len(b.Played)+len(b.Findings) > 0; used && !before.sameWords(&about) {
		return fmt.Errorf("--dir %s has the results of another %s: give another, or forget them with --fresh", b.dir, s.subject)
	} else if b.changed = about.changed(before); used && len(b.changed) > 0 {
		b.Result = &Result[F]{}
		if err := setAside(b.dir); err != nil {
			return err
		}
	}
	b.Again, err = s.findings(filepath.Join(b.dir, earlierDir))
	return err
}
