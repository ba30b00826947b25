// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

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
)

// group is what was found of what is probably one mistake.
type group struct {
	*Finding
	// Also are other faults that show it.
	Also []*Finding
}

// groups sorts findings into groups: the certain ones first, and in each the one with the
// shortest workload first.
func groups(findings []*Finding) (confirmed, once []group) {
	sorted := slices.Clone(findings)
	slices.SortStableFunc(sorted, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Problems[0].Oracle), rank(b.Problems[0].Oracle)), cmp.Compare(len(a.Workload.Steps), len(b.Workload.Steps)), cmp.Compare(a.where(), b.where()))
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
	reached, failed := 0, 0
	for _, p := range r.Played {
		if p.Reached {
			reached++
		}
		if p.Error != "" {
			failed++
		}
	}
	fmt.Fprintf(w, "\nPlayed %d of %d faults in %s, of which %d were reached", len(r.Played), r.Planned, r.Took.Round(time.Second), reached)
	if failed > 0 {
		fmt.Fprintf(w, " and %d could not be judged", failed)
	}
	fmt.Fprintf(w, "; %d not played. Found: %d.\n", r.Left, len(confirmed))
	if len(r.Streamed) > 0 {
		fmt.Fprintf(w, "Stale first lists were not played for %s: the operator streams these lists or asks for current ones, so they cannot be stale.\n", strings.Join(r.Streamed, ", "))
	}
}

func (g *group) text(w io.Writer, dir string) {
	fmt.Fprintf(w, "   %s\n", g.where())
	for _, p := range g.Problems {
		fmt.Fprintf(w, "   %s (step %d):\n", p.Oracle, p.Step)
		for i, line := range p.Lines {
			if i == 8 {
				fmt.Fprintf(w, "     … and %d more\n", len(p.Lines)-i)
				break
			}
			fmt.Fprintf(w, "     %s\n", line)
		}
	}
	if g.Fault != nil {
		fmt.Fprintf(w, "   can it happen: %s\n", g.Fault.possible())
	}
	fmt.Fprintln(w, "   what happened (seconds since the operator was started):")
	for _, m := range nearest(g.Timeline, 16) {
		fmt.Fprintf(w, "     %8.2f  %-8s  %s\n", m.Seconds, m.Lane, m.Text)
	}
	if len(g.Also) > 0 {
		fmt.Fprintf(w, "   the same with %d other faults, such as: %s\n", len(g.Also), g.Also[0].where())
	}
	if g.Shrinking != "" {
		fmt.Fprintf(w, "   its workload: %s\n", g.Shrinking)
	}
	fmt.Fprintf(w, "   again: sandbox replay %s\n", filepath.Join(dir, g.file()))
}

// nearest returns the moments around the fault.
func nearest(all []Moment, most int) []Moment {
	if len(all) <= most {
		return all
	}
	at := slices.IndexFunc(all, func(m Moment) bool { return strings.HasPrefix(m.Text, "BROKEN") })
	if at < 0 {
		at = slices.IndexFunc(all, func(m Moment) bool { return strings.HasPrefix(m.Text, "FAULT") })
	}
	from := max(0, min(at-most/4, len(all)-most))
	if at < 0 {
		from = len(all) - most
	}
	return all[from : from+most]
}

//go:embed report.html
var page string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent": func(m Moment, all []Moment) float64 {
		if last := all[len(all)-1].Seconds; last > 0 {
			return 100 * m.Seconds / last
		}
		return 0
	},
	"where": func(f *Finding) string { return f.where() },
	"title": func(f *Finding) string { return f.title() },
	"isFault": func(m Moment) bool {
		return strings.HasPrefix(m.Text, "FAULT") || strings.HasPrefix(m.Text, "BROKEN")
	},
	"possible": func(f *Finding) string {
		if f.Fault == nil {
			return ""
		}
		return f.Fault.possible()
	},
}).Parse(page))

// HTML writes the result as one page that needs nothing else.
func (r *Result) HTML(file string) error {
	confirmed, once := groups(r.Findings)
	out, err := os.Create(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer out.Close()
	return reportPage.Execute(out, map[string]any{"Result": r, "Confirmed": confirmed, "Once": once})
}

// JUnit writes the result for CI: a test case for each fault.
func (r *Result) JUnit(file string) error {
	cases := make([]JUnitCase, 0, len(r.Played))
	for _, p := range r.Played {
		c := JUnitCase{Name: p.Name, Class: "explore", Time: p.Seconds}
		i := slices.IndexFunc(r.Findings, func(f *Finding) bool { return f.ID == p.ID && f.confirmed() })
		switch {
		case i >= 0:
			var text strings.Builder
			for _, problem := range r.Findings[i].Problems {
				text.WriteString(string(problem.Oracle) + ":\n" + strings.Join(problem.Lines, "\n") + "\n")
			}
			c.Failure = &JUnitText{Message: r.Findings[i].title(), Text: text.String()}
		case p.Error != "":
			c.Error = &JUnitText{Message: oneLine(p.Error), Text: p.Error}
		case !p.Reached:
			c.Skipped = &JUnitText{Message: "the fault was not reached"}
		}
		cases = append(cases, c)
	}
	return WriteJUnit(file, "sandbox explore", r.Took, cases)
}

// Merge reads the results of several directories as one.
func Merge(dirs []string) (*Result, error) {
	r := &Result{}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "explore.json")); err != nil {
			return nil, fmt.Errorf("%s has no results of sandbox explore", dir)
		}
		played, findings, err := readBook(dir)
		if err != nil {
			return nil, err
		}
		for _, p := range played {
			if !slices.ContainsFunc(r.Played, func(q Played) bool { return q.ID == p.ID }) {
				r.Played = append(r.Played, p)
				r.Took += time.Duration(p.Seconds * float64(time.Second))
			}
		}
		r.Findings = append(r.Findings, findings...)
	}
	r.Planned = len(r.Played)
	return r, nil
}
