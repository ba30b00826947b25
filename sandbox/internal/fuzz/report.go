// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
)

// group is what was found of what is probably one mistake.
type group struct {
	*Finding
	// Also are other edits that show it.
	Also []*Finding
}

// groups sorts findings into groups: those that tell most first, and in each the one with
// the fewest edits first.
func groups(findings []*Finding) (confirmed, once []group) {
	oracles := []explore.Oracle{explore.Failed, explore.Broken, Changed, NotHealed, NotUndone, OtherThanFresh, explore.NotReached, explore.NotAtRest}
	sorted := slices.Clone(findings)
	slices.SortStableFunc(sorted, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(oracles, a.Problem.Oracle), slices.Index(oracles, b.Problem.Oracle)),
			cmp.Compare(len(a.Edits), len(b.Edits)), cmp.Compare(a.where(), b.where()))
	})
	for _, f := range sorted {
		into := &once
		if f.confirmed() {
			into = &confirmed
		}
		if i := slices.IndexFunc(*into, func(g group) bool { return g.kind() == f.kind() }); i >= 0 {
			(*into)[i].Also = append((*into)[i].Also, f)
			continue
		}
		*into = append(*into, group{Finding: f})
	}
	return confirmed, once
}

// Confirmed returns how many different mistakes were found for certain.
func (r *Result) Confirmed() int {
	confirmed, _ := groups(r.Findings)
	return len(confirmed)
}

// counts returns how often each outcome came, and how often it could not be judged.
func (r *Result) counts() (byOutcome map[outcome]int, failed int) {
	byOutcome = map[outcome]int{}
	for _, p := range r.Played {
		byOutcome[p.Outcome]++
		if p.Error != "" {
			failed++
		}
	}
	return byOutcome, failed
}

// Text writes the result for a terminal.
func (r *Result) Text(w io.Writer, dir string) {
	confirmed, once := groups(r.Findings)
	for i, g := range confirmed {
		fmt.Fprintf(w, "\n%d. %s\n", i+1, g.title())
		g.text(w, dir)
	}
	for _, g := range once {
		fmt.Fprintf(w, "\nFound once and not when it was played again, so it may be chance: %s\n  %s\n", g.title(), g.where())
	}
	came, failed := r.counts()
	fmt.Fprintf(w, "\nPlayed %d in %s: %d accepted, %d refused, %d without a change", len(r.Played), r.Took.Round(time.Second), came[accepted], came[denied], came[same])
	if failed > 0 {
		fmt.Fprintf(w, "; %d could not be judged", failed)
	}
	fmt.Fprintf(w, "; %d not played. Found: %d.\n", r.Left, len(confirmed))
}

func (g *group) text(w io.Writer, dir string) {
	fmt.Fprintf(w, "   %s\n", g.where())
	for _, e := range g.Edits {
		fmt.Fprintf(w, "   %s\n", shown(e.Path.String(), e.Value, e.Remove))
	}
	if g.Problem.When != "" {
		fmt.Fprintf(w, "   %s:\n", g.Problem.When)
	}
	for i, line := range g.Problem.Lines {
		if i == 8 {
			fmt.Fprintf(w, "     … and %d more\n", len(g.Problem.Lines)-i)
			break
		}
		fmt.Fprintf(w, "     %s\n", line)
	}
	fmt.Fprintln(w, "   what happened (seconds since the first edit was tried):")
	for _, m := range g.Timeline[max(0, len(g.Timeline)-16):] {
		fmt.Fprintf(w, "     %s\n", m)
	}
	if len(g.Also) > 0 {
		fmt.Fprintf(w, "   the same with %d other edits, such as: %s\n", len(g.Also), g.Also[0].where())
	}
	fmt.Fprintf(w, "   again: sandbox replay %s\n", g.file(dir))
}

// shown says what an edit sets.
func shown(path string, value any, remove bool) string {
	if remove {
		return path + " is removed"
	}
	return fmt.Sprintf("%s = %.200q", path, fmt.Sprint(value))
}

//go:embed report.html
var page string

var reportPage = template.Must(template.New("report").Parse(page))

// HTML writes the result as one page that needs nothing else.
func (r *Result) HTML(file string) error {
	type part struct {
		Title, Where, When string
		Lines, Also        []string
		Edits              []string
		Timeline           []explore.Moment
		Output             []string
	}
	confirmed, once := groups(r.Findings)
	parts := make([]part, 0, len(confirmed))
	for _, g := range confirmed {
		p := part{Title: g.title(), Where: g.where(), When: g.Problem.When, Lines: g.Problem.Lines, Timeline: g.Timeline, Output: g.Output}
		for _, e := range g.Edits {
			p.Edits = append(p.Edits, shown(e.Path.String(), e.Value, e.Remove))
		}
		for _, f := range g.Also {
			p.Also = append(p.Also, f.where())
		}
		parts = append(parts, p)
	}
	var chance []string
	for _, g := range once {
		chance = append(chance, g.title()+": "+g.where())
	}
	out, err := os.Create(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer out.Close()
	return reportPage.Execute(out, map[string]any{"Result": r, "Confirmed": parts, "Once": chance})
}

// JUnit writes the result for CI: a test case for each edit.
func (r *Result) JUnit(file string) error {
	found := map[string]*Finding{}
	for _, f := range r.Findings {
		if f.confirmed() {
			found[id(f.Edits...)] = f
		}
	}
	cases := make([]explore.JUnitCase, 0, len(r.Played))
	for _, p := range r.Played {
		c := explore.JUnitCase{Name: p.Name, Class: "fuzz", Time: p.Seconds}
		switch f := found[p.ID]; {
		case f != nil:
			c.Failure = &explore.JUnitText{Message: f.title(), Text: strings.Join(f.Problem.Lines, "\n")}
		case p.Error != "":
			c.Error = &explore.JUnitText{Message: oneLine(p.Error), Text: p.Error}
		}
		cases = append(cases, c)
	}
	return explore.WriteJUnit(file, "sandbox fuzz", r.Took, cases)
}
