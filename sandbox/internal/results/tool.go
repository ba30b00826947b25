// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Tool is a sandbox command that runs cases: explore or fuzz.
type Tool[F Finding] struct {
	// Name is the name of the command. Cases is the plural noun for the command's cases, such as
	// "faults".
	Name, Cases string
	// Subject is the noun for the command's input, such as "workload".
	Subject string
	// Parse decodes a finding file.
	Parse func(text []byte) (F, error)
	// Effects lists the outcomes of cases that reports count. Outcomes returns a phrase that
	// summarizes the outcomes in a result.
	Effects  []Effect
	Outcomes func(*Result[F]) string
	// Page is the template of the HTML report, created by NewPage.
	Page *template.Template
}

func (t *Tool[F]) store() store[F] {
	return store[F]{name: t.Name, subject: t.Subject, parse: t.Parse}
}

func (t *Tool[F]) summary(r *Result[F]) summary[F] {
	return summary[F]{cases: t.Cases, effects: t.Effects, result: r}
}

// Open opens a results directory to continue an earlier run, if any. The command and the input file
// names must be the same as in that run. If the content of an input has changed, the records of all
// cases are discarded, and cases with findings are run first.
func (t *Tool[F]) Open(dir string, about About) (*Book[F], error) {
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return nil, err
	}
	if other := otherTool(dir, t.Name); other != "" {
		return nil, fmt.Errorf("--dir %s has the results of sandbox %s: give another, or remove it", dir, other)
	}
	b := &Book[F]{Result: &Result[F]{}, dir: dir, began: time.Now()}
	if t.Is(dir) {
		if about.Fresh {
			err = forget(dir)
		}
		if err == nil {
			err = t.store().resume(b, about)
		}
	}
	if err == nil {
		err = os.WriteFile(t.store().aboutFile(dir), text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	b.file, err = os.OpenFile(filepath.Join(dir, playedFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return b, err
}

// Begin opens a results directory like Open, and prints which cases of earlier runs are repeated.
// The context `over` is canceled when the plan's time is up. The caller must call `end`.
func (t *Tool[F]) Begin(ctx context.Context, dir string, in Inputs, p Plan) (book *Book[F], over context.Context, end func(), err error) {
	began, over, cancel := time.Now(), ctx, func() {}
	if p.For > 0 {
		over, cancel = context.WithDeadline(ctx, began.Add(p.For))
	}
	about, err := NewAbout(in)
	if err == nil {
		about.Fresh = p.Fresh
		book, err = t.Open(dir, about)
	}
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	book.began = began
	book.Opened(p.Progress, t.Cases)
	return book, over, func() {
		book.Close()
		cancel()
	}, nil
}

// Is reports whether a directory contains results of this tool.
func (t *Tool[F]) Is(dir string) bool { return t.store().is(dir) }

// ReadFinding reads a finding file.
func (t *Tool[F]) ReadFinding(file string) (F, error) { return t.store().finding(file) }

// tools lists the names of the commands that use this package.
var tools = []string{"explore", "fuzz"}

// otherTool returns the name of another tool that has stored results in a directory, or "".
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

// Merge combines the results of several directories, such as the shards run by several machines.
func (t *Tool[F]) Merge(dirs []string) (*Result[F], error) {
	merged, s := &Result[F]{}, t.store()
	var first *About
	var parts parts
	for _, dir := range dirs {
		r, err := s.read(dir)
		if err != nil {
			return nil, err
		}
		about, err := s.about(dir)
		switch {
		case err != nil:
			return nil, err
		case first == nil:
			first = about
		case !about.partOf(first):
			return nil, fmt.Errorf("%s and %s have the results of another %s each: only parts of the same can be put together", dirs[0], dir, t.Subject)
		}
		part, err := readPart(dir)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		merged.Scope = merged.Scope.merge(part.Scope)
		merged.add(r)
	}
	merged.Took = merged.seconds()
	merged.Left = parts.left(merged.ids())
	merged.Planned, merged.Missing = len(merged.Played)+merged.Left, parts.missing()
	return merged, nil
}
