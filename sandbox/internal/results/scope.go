// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Scope is by what cases were judged, and what was left out of that, counted in the runs in which
// nothing was disturbed.
type Scope struct {
	// Judged are the kinds of objects that were compared, and Others how many kinds had none.
	Judged []Judged `json:"judged"`
	Others int      `json:"others"`
	// NotCompared is what was left out of the objects that there were, and Never are the kinds of
	// which no object is compared.
	NotCompared []NotCompared `json:"notCompared,omitempty"`
	Never       []string      `json:"never,omitempty"`
	// Masked does not count, though it is of an object that is compared.
	Masked []state.Masked `json:"masked,omitempty"`
	// Besides is what else is not judged, a line each.
	Besides []string `json:"besides,omitempty"`
}

// Judged is a kind of object that was compared.
type Judged struct {
	Resource string `json:"resource"`
	// Namespaces has none for objects that are in none.
	Namespaces []string `json:"namespaces,omitempty"`
	Objects    int      `json:"objects"`
	Fields     int      `json:"fields"`
}

// NotCompared is something that was left out: whole objects, or fields of them.
type NotCompared struct {
	What    string `json:"what"`
	Why     string `json:"why"`
	Objects int    `json:"objects"`
	// Fields is 0 if whole objects were left out.
	Fields int `json:"fields,omitempty"`
}

// Section is a part of what a result says about itself.
type Section struct {
	Title string   `json:"title"`
	Lines []string `json:"lines"`
}

// Effect is an outcome of cases, and how a report says with how many it came.
type Effect struct{ Outcome, Says string }

// merge adds the scope of another part of the cases.
func (s *Scope) merge(other *Scope) *Scope {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	}
	merged := &Scope{Others: min(s.Others, other.Others)}
	kinds := map[string]Judged{}
	for _, j := range slices.Concat(s.Judged, other.Judged) {
		known := kinds[j.Resource]
		j.Namespaces = union(known.Namespaces, j.Namespaces)
		j.Objects, j.Fields = max(known.Objects, j.Objects), max(known.Fields, j.Fields)
		kinds[j.Resource] = j
	}
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		merged.Judged = append(merged.Judged, kinds[resource])
	}
	for _, n := range slices.Concat(s.NotCompared, other.NotCompared) {
		i := slices.IndexFunc(merged.NotCompared, func(known NotCompared) bool { return known.What == n.What && known.Why == n.Why })
		if i < 0 {
			merged.NotCompared = append(merged.NotCompared, n)
			continue
		}
		known := &merged.NotCompared[i]
		known.Objects, known.Fields = max(known.Objects, n.Objects), max(known.Fields, n.Fields)
	}
	masked := state.NewMask()
	masked.Add(s.Masked...)
	masked.Add(other.Masked...)
	merged.Masked = masked.All()
	merged.Never, merged.Besides = union(s.Never, other.Never), union(s.Besides, other.Besides)
	return merged
}

// many is a number of things.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func union(one, other []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(one, other))))
}

// Sections say what a result means: what was played and what came of it, and by what it was judged.
func (t *Tool[F]) Sections(r *Result[F]) []Section {
	sections := []Section{{"Played", t.playedLines(r)}}
	if lines := r.unjudgedLines(); len(lines) > 0 {
		sections = append(sections, Section{"Could not be judged", lines})
	}
	s := r.Scope
	if s == nil {
		return append(sections, Section{"Judged", []string{"nothing is known of that: it ended before it was learnt"}})
	}
	sections = append(sections, Section{"Judged", s.judgedLines()})
	if lines := s.notComparedLines(); len(lines) > 0 {
		sections = append(sections, Section{"Not compared", lines})
	}
	var masked []string
	for _, m := range s.Masked {
		masked = append(masked, fmt.Sprintf("%s: it %s", m, cmp.Or(m.Why, "differs")))
	}
	if masked = append(masked, s.Besides...); len(masked) > 0 {
		sections = append(sections, Section{"Masked", masked})
	}
	return sections
}

// playedLines says what came of the cases, in numbers.
func (t *Tool[F]) playedLines(r *Result[F]) []string {
	lines := []string{fmt.Sprintf("of %d %s: %d", max(r.Planned, len(r.Played)), t.Cases, len(r.Played))}
	for _, e := range t.Effects {
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

// unjudgedLines says why cases could not be judged: what is the same but for numbers once.
func (r *Result[F]) unjudgedLines() []string {
	type reason struct {
		says string
		n    int
	}
	var reasons []*reason
	known := map[string]*reason{}
	for _, p := range r.Played {
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

// judgedLines says which objects were compared.
func (s *Scope) judgedLines() []string {
	var namespaces []string
	objects, fields := 0, 0
	var kinds []string
	for _, j := range s.Judged {
		objects, fields = objects+j.Objects, fields+j.Fields
		namespaces = append(namespaces, j.Namespaces...)
		where := ""
		if len(j.Namespaces) > 0 {
			where = " in " + strings.Join(j.Namespaces, ", ")
		}
		kinds = append(kinds, fmt.Sprintf("%s: %s%s, %s", j.Resource, many(j.Objects, "object"), where, many(j.Fields, "field")))
	}
	total := fmt.Sprintf("%s of %s of %s, in %s and in none", many(fields, "field"), many(objects, "object"), many(len(s.Judged), "kind"), many(len(union(namespaces, nil)), "namespace"))
	lines := append([]string{total}, kinds...)
	if s.Others > 0 {
		lines = append(lines, fmt.Sprintf("%s more, of which there was no object", many(s.Others, "kind")))
	}
	return lines
}

// notComparedLines says what of the objects was left out.
func (s *Scope) notComparedLines() []string {
	var lines []string
	for _, n := range s.NotCompared {
		if n.Fields > 0 {
			lines = append(lines, fmt.Sprintf("%s, %s of %s: %s", n.What, many(n.Fields, "field"), many(n.Objects, "object"), n.Why))
		} else {
			lines = append(lines, fmt.Sprintf("%s, %s: %s", n.What, many(n.Objects, "object"), n.Why))
		}
	}
	if len(s.Never) > 0 {
		lines = append(lines, fmt.Sprintf("%s, never: %s", many(len(s.Never), "kind"), strings.Join(s.Never, ", ")))
	}
	return lines
}

// mostSaid bounds a section in a report for a terminal.
const mostSaid = 12

// Means writes what a result means for a terminal.
func (t *Tool[F]) Means(w io.Writer, r *Result[F]) {
	fmt.Fprintln(w, "\nWhat this result means:")
	for _, section := range t.Sections(r) {
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

// resultFile has a result for programs.
const resultFile = "result.json"

// JSON writes a result for programs to a directory.
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
		"confirmed": r.Confirmed(), "findings": all, "scope": r.Scope, "means": t.Sections(r),
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, resultFile), text, 0o600)
}
