// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Tool is one that plays cases.
type Tool[F Finding] struct {
	// Name is that of its command, and Cases what it plays, in the plural.
	Name, Cases string
	// Subject is what the results of a directory are about.
	Subject string
	// Parse reads a finding.
	Parse func(text []byte) (F, error)
	// Effects are the outcomes that reports count.
	Effects []Effect
	// Page is what NewPage returns.
	Page *template.Template
}

// Played is a case that was played.
type Played struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Outcome is what came of it, as reports have it.
	Outcome string  `json:"outcome,omitempty"`
	Found   bool    `json:"found"`
	Seconds float64 `json:"seconds"`
	// Then are the IDs of the cases that are played because of it; nil: that was not asked.
	Then []string `json:"then,omitzero"`
	// Error says why it could not be judged.
	Error string `json:"error,omitempty"`
	// Unsure: there was no time to play it again, which would make sure of what was found.
	Unsure bool `json:"unsure,omitempty"`
}

// Done reports whether a case need not be played again: it was judged, and what was found is certain
// or was tried again.
func (p *Played) Done() bool { return !p.Unsure && p.Error == "" }

// NotReached is the outcome of a case in which what it is about did not happen.
const NotReached = "not reached"

// Book keeps a result in a directory.
type Book[F Finding] struct {
	*Result[F]

	// Again are findings of earlier contents, which are to be played first.
	Again []F

	dir   string
	file  *os.File
	began time.Time
	// last is when a case was played before, and changed are the contents that differ since.
	last    time.Time
	changed []string
	// part is what is to be played here.
	part part
}

// playedFile has a line of JSON for each case that was played.
const playedFile = "played.jsonl"

// aboutFile is the name of the file that says what a directory of results is about.
func (t *Tool[F]) aboutFile() string { return t.Name + ".json" }

// Open opens the book of a directory. If there is one, it must be of the same command and of the
// same files. What was played with other contents is forgotten, and what was found with them is
// to be played again first.
func (t *Tool[F]) Open(dir string, about About) (*Book[F], error) {
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return nil, err
	}
	if other := otherTool(dir, t.Name); other != "" {
		return nil, fmt.Errorf("--dir %s has the results of sandbox %s: give another, or remove it", dir, other)
	}
	b := &Book[F]{Result: &Result[F]{}, dir: dir, began: time.Now()}
	file := filepath.Join(dir, t.aboutFile())
	if t.Is(dir) {
		if about.Fresh {
			err = forget(dir)
		}
		if err == nil {
			err = t.goOn(b, about)
		}
	}
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	b.file, err = os.OpenFile(filepath.Join(dir, playedFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return b, err
}

// otherTool returns the name of another tool that has its results in a directory, if there is one.
func otherTool(dir, name string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files {
		other := strings.TrimSuffix(filepath.Base(file), ".json")
		if other != name && slices.Contains(tools, other) {
			return other
		}
	}
	return ""
}

// tools are the names of those that keep their results in this way.
var tools = []string{"explore", "fuzz"}

// Note keeps that a case was played.
func (b *Book[F]) Note(p Played) error {
	b.note(p)
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err = b.file.Write(append(line, '\n')); err == nil && p.Error == "" {
		b.Replayed(p.ID)
	}
	return err
}

// note notes a case: once if it was played again.
func (r *Result[F]) note(p Played) {
	if i := slices.IndexFunc(r.Played, func(other Played) bool { return other.ID == p.ID }); i >= 0 {
		r.Played[i] = p
		return
	}
	r.Played = append(r.Played, p)
}

// Found keeps a finding, in place of that which was found before with the same case.
func (b *Book[F]) Found(f F) error {
	if i := slices.IndexFunc(b.Findings, func(other F) bool { return other.Case() == f.Case() }); i >= 0 {
		b.Findings[i] = f
	} else {
		b.Findings = append(b.Findings, f)
	}
	return b.Save(f)
}

// Save keeps what has become of a finding.
func (b *Book[F]) Save(f F) error { return save(b.dir, f) }

// Close ends it.
func (b *Book[F]) Close() { _ = b.file.Close() }

// Progress says what came of a case, how many are left, and how long they take, which is
// not after the end of the context.
func (b *Book[F]) Progress(over context.Context, w io.Writer, p Played, came string, left int) {
	done := len(b.Played)
	rest := time.Duration(float64(time.Since(b.began)) / float64(max(done, 1)) * float64(left)).Round(time.Second)
	if end, limited := over.Deadline(); limited {
		rest = min(rest, max(time.Until(end), 0).Round(time.Second))
	}
	fmt.Fprintf(w, "[%d of %d, %s to go] %s (%.1f s): %s\n", done, done+left, rest, p.Name, p.Seconds, came)
}

// Verdict says that something was found.
func Verdict(f Finding) string {
	if f.Confirmed() {
		return "FOUND: " + f.Title()
	}
	switch e := f.evidence(); {
	case e.Tries == 0:
		return "found once, and there is no time to play it again: " + f.Title()
	case e.Second != "":
		return fmt.Sprintf("found once: %s; and not again: %s", f.Title(), e.Second)
	}
	return "found once, and not again: " + f.Title()
}

// Is reports whether a directory has results of the tool.
func (t *Tool[F]) Is(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, t.aboutFile()))
	return err == nil
}

// read reads what a directory has.
func (t *Tool[F]) read(dir string) (*Result[F], error) {
	if !t.Is(dir) {
		return nil, fmt.Errorf("%s has no results of sandbox %s", dir, t.Name)
	}
	r := &Result[F]{}
	text, err := os.ReadFile(filepath.Join(dir, playedFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var p Played
		if json.Unmarshal([]byte(line), &p) == nil { // The last line may be half a one.
			r.note(p)
		}
	}
	r.Findings, err = t.findings(dir)
	return r, err
}

// findingFiles are the files of findings.
const findingFiles = "finding-*.yaml"

// findings reads those of a directory.
func (t *Tool[F]) findings(dir string) ([]F, error) {
	files, err := filepath.Glob(filepath.Join(dir, findingFiles))
	if err != nil {
		return nil, err
	}
	var all []F
	for _, file := range files {
		f, err := t.ReadFinding(file)
		if err != nil {
			return nil, err
		}
		f.evidence().dir = dir
		all = append(all, f)
	}
	return all, nil
}

// readAbout reads what the results of a directory are about.
func (t *Tool[F]) readAbout(dir string) (*About, error) {
	file := filepath.Join(dir, t.aboutFile())
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

// ReadFinding reads the file of a finding.
func (t *Tool[F]) ReadFinding(file string) (F, error) {
	var none F
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return none, err
	}
	f, err := t.Parse(text)
	if err != nil {
		return none, fmt.Errorf("%s is not a finding of sandbox %s: %w", file, t.Name, err)
	}
	return f, nil
}
