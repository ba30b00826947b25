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

// Tool is a command that plays cases, such as explore.
type Tool[F Finding] struct {
	// Name is the name of the command, and Cases the plural noun for its cases.
	Name, Cases string
	// Subject is the noun for the input of a result, such as "workload".
	Subject string
	// Parse parses a finding.
	Parse func(text []byte) (F, error)
	// Effects are the outcomes that reports count, and Outcomes describes the outcomes of a result
	// in a part of a sentence.
	Effects  []Effect
	Outcomes func(*Result[F]) string
	// Page is the HTML page, from NewPage.
	Page *template.Template
}

func (t *Tool[F]) store() store[F] {
	return store[F]{name: t.Name, subject: t.Subject, parse: t.Parse}
}

func (t *Tool[F]) summary(r *Result[F]) summary[F] {
	return summary[F]{cases: t.Cases, effects: t.Effects, result: r}
}

// Open opens the results of a directory, to continue them. They must be for the same command and the same
// files. If other contents have changed, played cases are discarded, and cases with findings are played
// first.
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

// Begin opens the results of a directory as Open does, for cases that depend on the inputs, and
// prints which cases of earlier runs are played again. The context over ends when the time of the
// plan is over. The caller must call end.
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

// Is reports whether a directory has results of the tool.
func (t *Tool[F]) Is(dir string) bool { return t.store().is(dir) }

// ReadFinding reads the file of a finding.
func (t *Tool[F]) ReadFinding(file string) (F, error) { return t.store().finding(file) }

// tools are the names of the tools that use this package.
var tools = []string{"explore", "fuzz"}

// otherTool returns the name of another tool whose results are in a directory, or "".
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

// Merge combines the results of several directories, such as the parts of several machines.
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
