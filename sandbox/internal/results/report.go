// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// mostMoments is the maximum number of timeline entries in the terminal report.
const mostMoments = 16

// Text writes a result's report for the terminal. `dir` is the results directory of the findings,
// unless they were read from another directory.
func (t *Tool[F]) Text(w io.Writer, r *Result[F], dir string) {
	t.findings(w, r, dir)
	fmt.Fprintf(w, "\n%s; %d not played. Found: %d.\n", t.Outcomes(r), r.Left, r.Confirmed())
	for _, line := range slices.Concat(r.Doubt(), r.Remarks) {
		fmt.Fprintln(w, line)
	}
	t.means(w, r)
}

// TextOf writes the report for the terminal for a single finding.
func (t *Tool[F]) TextOf(w io.Writer, f F, dir string) {
	t.findings(w, &Result[F]{Findings: []F{f}}, dir)
}

// findings writes the findings in a result's terminal report.
func (t *Tool[F]) findings(w io.Writer, r *Result[F], dir string) {
	confirmed, once := r.Groups()
	for i, g := range confirmed {
		fmt.Fprintf(w, "\n%d. %s\n   %s\n", i+1, g.Finding.Title(), g.Finding.Where())
		g.Finding.Describe(w)
		fmt.Fprintln(w, "   what happened (in seconds):")
		moments, last := nearest(g.Finding.evidence().Timeline, mostMoments)
		for _, m := range moments {
			fmt.Fprintf(w, "     %s\n", m)
		}
		if len(last) > 0 {
			fmt.Fprintln(w, "          …")
		}
		for _, m := range last {
			fmt.Fprintf(w, "     %s\n", m)
		}
		if len(g.Also) > 0 {
			fmt.Fprintf(w, "   the same with %d other %s, such as: %s\n", len(g.Also), t.Cases, g.Also[0].Where())
		}
		fmt.Fprintf(w, "   again: sandbox replay %s\n", filepath.Join(cmp.Or(g.Finding.evidence().dir, dir), File(g.Finding)))
	}
	for _, g := range once {
		only := "Found once and not when it was played again, so it may be chance"
		switch e := g.Finding.evidence(); {
		case e.Tries == 0:
			only = "Found once, and there was no time to play it again, so it may be chance"
		case e.Second != "":
			only = "Found once and not when it was played again (" + e.Second + "), so it may be chance"
		}
		fmt.Fprintf(w, "\n%s: %s\n  %s\n", only, g.Finding.Title(), g.Finding.Where())
	}
}

// mostLines is the maximum number of a finding's violations in the terminal report.
const mostLines = 8

// Lines writes a finding's violations, one per line, and shortens long lists.
func Lines(w io.Writer, lines []string) {
	for i, line := range lines {
		if i == mostLines {
			fmt.Fprintf(w, "     … and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(w, "     %s\n", line)
	}
}

//go:embed report.html
var page string

// NewPage returns the template of a tool's HTML report. `what` is the template for the details of a
// finding.
func NewPage(what string) *template.Template {
	t := template.New("report").Funcs(template.FuncMap{
		"percent": func(m Moment, all []Moment) float64 {
			if last := all[len(all)-1].Seconds; last > 0 {
				return 100 * m.Seconds / last
			}
			return 0
		},
	})
	return template.Must(template.Must(t.Parse(page)).New("what").Parse(what))
}

// HTML writes a result to a file, as a single HTML page without external resources.
func (t *Tool[F]) HTML(file string, r *Result[F]) error {
	confirmed, once := r.Groups()
	out, err := os.Create(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer out.Close()
	return t.Page.ExecuteTemplate(out, "report", map[string]any{"Tool": t, "Result": r, "Confirmed": confirmed, "Once": once, "Means": t.summary(r).sections()})
}
