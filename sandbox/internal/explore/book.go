// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// book keeps what was played in a directory, so that an interrupted exploration goes on.
type book struct {
	dir      string
	file     *os.File
	played   []Played
	findings []*Finding
}

// bookOf is what a directory of results is about.
type bookOf struct {
	Command  []string  `json:"command"`
	Workload *Workload `json:"workload"`
}

func openBook(e *Explorer) (*book, error) {
	b := &book{dir: e.Dir}
	about, err := json.MarshalIndent(bookOf{e.Command, e.Workload}, "", "  ")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(e.Dir, "explore.json")
	known, err := os.ReadFile(file)
	switch {
	case err == nil && string(known) != string(about):
		return nil, fmt.Errorf("--dir %s has the results of another workload or operator: give another, or remove it", e.Dir)
	case err == nil:
		if b.played, b.findings, err = readBook(e.Dir); err != nil {
			return nil, err
		}
	case errors.Is(err, os.ErrNotExist):
		if err := os.WriteFile(file, about, 0o600); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	b.file, err = os.OpenFile(filepath.Join(e.Dir, "played.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return b, err
}

// readBook reads what was played, and what was found.
func readBook(dir string) ([]Played, []*Finding, error) {
	var played []Played
	text, err := os.ReadFile(filepath.Join(dir, "played.jsonl"))
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

func (b *book) found(f *Finding) error {
	_, err := f.save(b.dir)
	return err
}

func (b *book) close() { _ = b.file.Close() }
