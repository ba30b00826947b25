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

	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// Played is a case that was played.
type Played struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Outcome is the outcome of the case, such as NotReached.
	Outcome string  `json:"outcome,omitempty"`
	Found   bool    `json:"found"`
	Seconds float64 `json:"seconds"`
	// Then are the IDs of the cases that are played because of this case; nil: not determined.
	Then []string `json:"then,omitzero"`
	// Error is the reason why the case could not be judged.
	Error string `json:"error,omitempty"`
	// Unsure is set if there was no time to confirm the finding, so that it may be due to chance.
	Unsure bool `json:"unsure,omitempty"`
}

// Done reports whether a case need not be played again: it was judged, and its finding, if any, is certain or
// was replayed.
func (p *Played) Done() bool { return !p.Unsure && p.Error == "" }

// NotReached is the outcome of a case whose fault or edit did not take effect.
const NotReached = "not reached"

// Book writes the result of a run to a directory while cases are played.
type Book[F Finding] struct {
	*Result[F]

	// Again are findings with earlier contents, whose cases are played first.
	Again []F

	dir   string
	file  *os.File
	began time.Time
	// last is the time at which the last case was played, and changed has the contents that differ since
	// then.
	last    time.Time
	changed []string
	// part is the part of the cases that this process plays.
	part part
}

// Note writes a played case.
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

// Found writes a finding, and replaces an earlier finding of the same case.
func (b *Book[F]) Found(f F) error {
	if i := slices.IndexFunc(b.Findings, func(other F) bool { return other.Case() == f.Case() }); i >= 0 {
		b.Findings[i] = f
	} else {
		b.Findings = append(b.Findings, f)
	}
	return b.Save(f)
}

// Like returns the case of a confirmed finding of the same kind, or "". Such a finding probably has
// the same cause, so that time is better spent on other cases than on playing it again.
func (b *Book[F]) Like(f F) string {
	for _, other := range b.Findings {
		if other.Confirmed() && other.Kind() == f.Kind() {
			return other.Case()
		}
	}
	return ""
}

// Save writes a changed finding.
func (b *Book[F]) Save(f F) error { return save(b.dir, f) }

// Elapsed returns the time since the run began.
func (b *Book[F]) Elapsed() time.Duration { return time.Since(b.began) }

// Close closes the file of played cases.
func (b *Book[F]) Close() { _ = b.file.Close() }

// Progress prints the outcome of a case, the number of cases left and an estimate of their time, at
// most until the context ends. f is the finding of the case, if it has found one, and wanted is set for
// an outcome that says the most about the operator.
func (b *Book[F]) Progress(over context.Context, w io.Writer, p Played, f F, wanted bool, left int) {
	came := "ok"
	switch {
	case p.Found:
		came = Verdict(f)
	case p.Error != "":
		came = "error: " + words.OneLine(p.Error)
	case !wanted:
		came = p.Outcome
	}
	done := len(b.Played)
	rest := time.Duration(float64(time.Since(b.began)) / float64(max(done, 1)) * float64(left)).Round(time.Second)
	if end, limited := over.Deadline(); limited {
		rest = min(rest, max(time.Until(end), 0).Round(time.Second))
	}
	fmt.Fprintf(w, "[%d of %d, %s to go] %s (%.1f s): %s\n", done, done+left, rest, p.Name, p.Seconds, came)
}

// Verdict describes a finding in a line, and how certain it is.
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
