// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"fmt"
	"io"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Tool describes fuzz for package results, which stores the results of runs and writes the reports.
var Tool = &results.Tool[*Finding]{
	Name: "fuzz", Cases: "edits", Subject: "object or operator", Parse: parseFinding, Outcomes: outcomes,
	Effects: []results.Effect{
		{Outcome: string(accepted), Says: "were accepted, and judged by what the operator did"},
		{Outcome: string(denied), Says: "were refused by the API server, and judged by whether that changed anything"},
		{Outcome: string(same), Says: "changed nothing, so there was nothing to judge"},
		{Outcome: string(disturbed), Says: "with a fault that took effect"},
		{Outcome: string(notReached), Says: "with a fault that did not take effect"},
	},
	Page: results.NewPage(`<pre>{{range .Made}}{{.}}
{{end}}</pre>
{{with .Fault.Possible}}<p>Can it happen? {{.}}</p>{{end}}
{{with .Problem.When}}<p>{{.}}:</p>{{end}}
<pre>{{range .Problem.Lines}}{{.}}
{{end}}</pre>`),
}

// outcomes returns a phrase that summarizes the results of all edits.
func outcomes(r *results.Result[*Finding]) string {
	text := fmt.Sprintf("Played %d in %s: %d accepted, %d refused, %d without a change", len(r.Played), r.Took.Round(time.Second),
		r.Came(string(accepted)), r.Came(string(denied)), r.Came(string(same)))
	if failed := r.Failed(); failed > 0 {
		text += fmt.Sprintf("; %d could not be judged", failed)
	}
	if faults := r.Came(string(disturbed)) + r.Came(string(notReached)); faults > 0 {
		text += fmt.Sprintf("; %d with a fault, of which %d were reached", faults, r.Came(string(disturbed)))
	} else if slices.ContainsFunc(r.Played, func(p results.Played) bool { return p.Then != nil }) {
		text += "; none with a fault, as the operator has written nothing after an edit that it has survived"
	}
	return text
}

// Describe implements [results.Finding].
func (f *Finding) Describe(w io.Writer) {
	for _, made := range f.Made() {
		fmt.Fprintf(w, "   %s\n", made)
	}
	if f.Fault != nil {
		fmt.Fprintf(w, "   can it happen: %s\n", f.Fault.Possible())
	}
	if f.Problem.When != "" {
		fmt.Fprintf(w, "   %s:\n", f.Problem.When)
	}
	results.Lines(w, f.Problem.Lines)
}

// Made returns a line for each edit of the finding, and a line for its fault, if any.
func (f *Finding) Made() []string {
	var lines []string
	for _, e := range f.Edits {
		if e.Remove {
			lines = append(lines, e.Path.String()+" is removed")
		} else {
			lines = append(lines, fmt.Sprintf("%s = %.200q", e.Path, fmt.Sprint(e.Value)))
		}
	}
	if f.Fault != nil {
		lines = append(lines, fmt.Sprintf("then %s: %s", f.Fault.Call, f.Fault.Entry().Text))
	}
	return lines
}
