// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

var tool = &results.Tool[*Finding]{
	Name: "explore", Cases: "faults", Subject: "workload or operator", Parse: parseFinding,
	Effects: []results.Effect{{Outcome: reached, Says: "took effect, and were judged"}, {Outcome: results.NotReached, Says: "did not take effect: the operator did not do again what they are about"}},
	Page: results.NewPage(`{{range .Problems}}<p><strong>{{.Oracle}}</strong>, noticed in step {{.Step}}:</p><pre>{{range .Lines}}{{.}}
{{end}}</pre>{{end}}
{{with .Possible}}<p>Can it happen? {{.}}</p>{{end}}
{{with .Shrinking}}<p>Its workload: {{.}}.</p>{{end}}`),
}

// reached is the outcome of a fault that was injected.
const reached = "reached"

// Text writes the result for a terminal.
func (r *Result) Text(w io.Writer, dir string) {
	tool.Text(w, r.Result, dir)
	fmt.Fprintf(w, "\nPlayed %d of %d faults in %s, of which %d were reached", len(r.Played), r.Planned, r.Took.Round(time.Second), r.Came(reached))
	if failed := r.Failed(); failed > 0 {
		fmt.Fprintf(w, " and %d could not be judged", failed)
	}
	fmt.Fprintf(w, "; %d not played. Found: %d.\n", r.Left, r.Confirmed())
	for _, doubt := range r.Doubt() {
		fmt.Fprintln(w, doubt)
	}
	if len(r.Streamed) > 0 {
		fmt.Fprintf(w, "Stale first lists were not played for %s: the operator streams these lists or asks for current ones, so they cannot be stale.\n", strings.Join(r.Streamed, ", "))
	}
	tool.Means(w, r.Result)
}

// Describe implements [results.Finding].
func (f *Finding) Describe(w io.Writer) {
	for _, p := range f.Problems {
		fmt.Fprintf(w, "   %s (step %d):\n", p.Oracle, p.Step)
		results.Lines(w, p.Lines)
	}
	if possible := f.Possible(); possible != "" {
		fmt.Fprintf(w, "   can it happen: %s\n", possible)
	}
	if f.Shrinking != "" {
		fmt.Fprintf(w, "   its workload: %s\n", f.Shrinking)
	}
}

// Text writes a finding for a terminal.
func (f *Finding) Text(w io.Writer, dir string) {
	tool.Text(w, &results.Result[*Finding]{Findings: []*Finding{f}}, dir)
}

// HTML writes the result as a page.
func (r *Result) HTML(file string) error { return tool.HTML(file, r.Result) }

// JUnit writes the result for CI.
func (r *Result) JUnit(file string) error { return tool.JUnit(file, r.Result) }

// JSON writes the result for programs to a directory.
func (r *Result) JSON(dir string) error { return tool.JSON(dir, r.Result) }

// IsResult reports whether a directory has the results of this package.
func IsResult(dir string) bool { return tool.Is(dir) }

// Merge combines the results in several directories, as of the shards of an exploration.
func Merge(dirs []string) (*Result, error) {
	merged, err := tool.Merge(dirs)
	return &Result{Result: merged}, err
}
