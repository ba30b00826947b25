// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

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
