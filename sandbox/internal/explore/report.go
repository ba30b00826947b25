// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"io"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Tool stores explore's results and reports them.
var Tool = &results.Tool[*Finding]{
	Name: "explore", Cases: "faults", Subject: "workload or operator", Parse: parseFinding, Outcomes: outcomes,
	Effects: []results.Effect{{Outcome: reached, Says: "took effect, and were judged"}, {Outcome: results.NotReached, Says: "did not take effect: the operator did not do again what they are about"}},
	Page: results.NewPage(`{{range .Problems}}<p><strong>{{.Oracle}}</strong>, noticed in step {{.Step}}:</p><pre>{{range .Lines}}{{.}}
{{end}}</pre>{{end}}
{{with .Fault.Possible}}<p>Can it happen? {{.}}</p>{{end}}
{{with .Shrinking}}<p>Its workload: {{.}}.</p>{{end}}`),
}

// reached is the outcome of a run in which the fault was injected.
const reached = "reached"

// outcomes returns a phrase that summarizes the results of all faults.
func outcomes(r *results.Result[*Finding]) string {
	text := fmt.Sprintf("Played %d of %d faults in %s, of which %d were reached", len(r.Played), r.Planned, r.Took.Round(time.Second), r.Came(reached))
	if failed := r.Failed(); failed > 0 {
		text += fmt.Sprintf(" and %d could not be judged", failed)
	}
	return text
}

// Describe implements [results.Finding] and writes the problems, and how the fault can happen.
func (f *Finding) Describe(w io.Writer) {
	for _, p := range f.Problems {
		fmt.Fprintf(w, "   %s (step %d):\n", p.Oracle, p.Step)
		results.Lines(w, p.Lines)
	}
	if possible := f.Fault.Possible(); possible != "" {
		fmt.Fprintf(w, "   can it happen: %s\n", possible)
	}
	if f.Shrinking != "" {
		fmt.Fprintf(w, "   its workload: %s\n", f.Shrinking)
	}
}
