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

// Played is the record of a completed case: a fault that explore injected, or edits that fuzz made.
type Played struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Outcome is the outcome of the case: NotReached, or an outcome defined by the tool.
	Outcome string  `json:"outcome,omitempty"`
	Found   bool    `json:"found"`
	Seconds float64 `json:"seconds"`
	// Then lists the IDs of the cases that continue this case, if any. It is nil until these cases
	// have been determined.
	Then []string `json:"then,omitzero"`
	// Error is the reason why no verdict on the case was possible. It is empty if there is a
	// verdict.
	Error string `json:"error,omitempty"`
	// Unsure is set if no time was left to confirm the finding, which may therefore be due to
	// chance.
	Unsure bool `json:"unsure,omitempty"`
}

// Done reports whether the case need not be run again. This is so if the case has a verdict, and if
// there was time to confirm the finding, if any.
func (p *Played) Done() bool { return !p.Unsure && p.Error == "" }

// NotReached is the outcome of a case whose fault or edit did not take effect.
const NotReached = "not reached"

// Book writes the results of a run to a directory, after each case (a fault or edits).
type Book[F Finding] struct {
	*Result[F]

	// Again lists the findings that were made with earlier versions of the inputs. The cases of
	// these findings are run first.
	Again []F

	dir   string
	file  *os.File
	began time.Time
	// last is the time at which an earlier run completed its last case, or zero if there is no
	// earlier run. changed lists the inputs that have changed since then.
	last    time.Time
	changed []string
	// part is this process's subset of the cases.
	part part
}

// Note stores the record of a completed case.
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

// Found stores a finding, and replaces an earlier finding of the same case.
func (b *Book[F]) Found(f F) error {
	if i := slices.IndexFunc(b.Findings, func(other F) bool { return other.Case() == f.Case() }); i >= 0 {
		b.Findings[i] = f
	} else {
		b.Findings = append(b.Findings, f)
	}
	return b.Save(f)
}

// Like returns the case ID of a confirmed finding of the same kind as `f`, or "" if there is none.
// `f` probably has the same cause, so that the time is better spent on other cases than on
// confirming `f`.
func (b *Book[F]) Like(f F) string {
	for _, other := range b.Findings {
		if other.Confirmed() && other.Kind() == f.Kind() {
			return other.Case()
		}
	}
	return ""
}

// Save writes a changed finding to its file.
func (b *Book[F]) Save(f F) error { return save(b.dir, f) }

// Elapsed returns the time since the start of the run.
func (b *Book[F]) Elapsed() time.Duration { return time.Since(b.began) }

// Close closes the file with the records of the cases. The results can still be read afterwards.
func (b *Book[F]) Close() { _ = b.file.Close() }

// Progress prints the outcome of a case, the number of remaining cases, and an estimate of the
// remaining time, limited by the deadline of `over`. `f` is the finding of the case, if any.
// `wanted` is set if the case took effect as intended, so that "ok" is printed in place of its
// outcome.
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

// Verdict describes a finding and its certainty in a line.
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
