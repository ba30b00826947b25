// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Section is a titled paragraph of a report.
type Section struct {
	Title string   `json:"title"`
	Lines []string `json:"lines"`
}

// Effect is an outcome of cases (faults or edits), with the phrase that describes cases with this
// outcome in reports.
type Effect struct{ Outcome, Says string }

// summary builds the part of a report that explains what a result covers: how many of the planned
// cases were completed, with which outcomes, and by which objects and fields they were judged.
type summary[F Finding] struct {
	cases   string
	effects []Effect
	result  *Result[F]
}

// sections returns the summary's paragraphs: the completed cases with their outcomes, and the
// objects and fields by which the cases were judged.
func (s summary[F]) sections() []Section {
	sections := []Section{{"Played", s.playedLines()}}
	if lines := s.unjudgedLines(); len(lines) > 0 {
		sections = append(sections, Section{"Could not be judged", lines})
	}
	scope := s.result.Scope
	if scope == nil {
		return append(sections, Section{"Judged", []string{"nothing is known of that: it ended before it was learnt"}})
	}
	sections = append(sections, Section{"Judged", scope.judgedLines()})
	if lines := scope.notComparedLines(); len(lines) > 0 {
		sections = append(sections, Section{"Not compared", lines})
	}
	var masked []string
	for _, m := range scope.Masked {
		masked = append(masked, fmt.Sprintf("%s: it %s", m, cmp.Or(m.Why, "differs")))
	}
	if masked = append(masked, scope.Besides...); len(masked) > 0 {
		sections = append(sections, Section{"Masked", masked})
	}
	return sections
}

// playedLines lists the number of cases for each outcome.
func (s summary[F]) playedLines() []string {
	r := s.result
	lines := []string{fmt.Sprintf("of %d %s: %d", max(r.Planned, len(r.Played)), s.cases, len(r.Played))}
	for _, e := range s.effects {
		n := 0
		for _, p := range r.Played {
			if p.Outcome == e.Outcome && p.Error == "" {
				n++
			}
		}
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%d %s", n, e.Says))
		}
	}
	if failed := r.Failed(); failed > 0 {
		lines = append(lines, fmt.Sprintf("%d could not be judged", failed))
	}
	if r.Left > 0 {
		lines = append(lines, fmt.Sprintf("%d were left out: nothing is known of them", r.Left))
	}
	if len(r.Missing) > 0 {
		lines = append(lines, "of these parts there is nothing: "+strings.Join(r.Missing, ", "))
	}
	return lines
}

var digits = regexp.MustCompile(`\d+`)

// unjudgedLines lists the errors of cases that could not be judged. Errors that differ only in
// numbers are combined.
func (s summary[F]) unjudgedLines() []string {
	type reason struct {
		says string
		n    int
	}
	var reasons []*reason
	known := map[string]*reason{}
	for _, p := range s.result.Played {
		if p.Error == "" {
			continue
		}
		says, _, _ := strings.Cut(p.Error, "\n")
		like := digits.ReplaceAllString(says, "N")
		if known[like] == nil {
			known[like] = &reason{says: says}
			reasons = append(reasons, known[like])
		}
		known[like].n++
	}
	slices.SortStableFunc(reasons, func(a, b *reason) int { return cmp.Compare(b.n, a.n) })
	var lines []string
	for _, reason := range reasons {
		lines = append(lines, fmt.Sprintf("%d: %s", reason.n, reason.says))
	}
	return lines
}

// mostSaid is the maximum number of lines per section in the terminal report.
const mostSaid = 12

// means writes a result's summary for a terminal, under the title "What this result means".
func (t *Tool[F]) means(w io.Writer, r *Result[F]) {
	fmt.Fprintln(w, "\nWhat this result means:")
	for _, section := range t.summary(r).sections() {
		fmt.Fprintf(w, "  %s\n", section.Title)
		for i, line := range section.Lines {
			if i == mostSaid && len(section.Lines) > mostSaid+1 {
				fmt.Fprintf(w, "    … and %d more: they are in the page and in %s\n", len(section.Lines)-i, resultFile)
				break
			}
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
}

// resultFile is the name of the file that the JSON method writes.
const resultFile = "result.json"

// JSON writes a result to a JSON file in a directory.
func (t *Tool[F]) JSON(dir string, r *Result[F]) error {
	type found struct {
		Case      string `json:"case"`
		Title     string `json:"title"`
		Confirmed bool   `json:"confirmed"`
	}
	all := []found{}
	for _, f := range r.Findings {
		all = append(all, found{f.Case(), f.Title(), f.Confirmed()})
	}
	text, err := json.MarshalIndent(map[string]any{
		"tool": t.Name, "planned": max(r.Planned, len(r.Played)), "played": len(r.Played), "left": r.Left, "unjudged": r.Failed(), "missing": r.Missing,
		"confirmed": r.Confirmed(), "findings": all, "scope": r.Scope, "means": t.summary(r).sections(),
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, resultFile), text, 0o600)
}
