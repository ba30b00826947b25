// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import (
	"fmt"
	"io"
	"strings"
)

// Head is the header of the Markdown table.
const Head = "| pair | the mistake | found as | faults | alarms of the twin |\n|---|---|---|---|---|\n"

// widest is the maximum length of a table cell, in bytes.
const widest = 160

// Table writes a table with the results of all pairs. Pairs whose result is not OK come first.
func Table(out io.Writer, results []Result) {
	fmt.Fprint(out, Head)
	for _, ok := range []bool{false, true} {
		for i := range results {
			if results[i].OK() == ok {
				fmt.Fprint(out, results[i].Line())
			}
		}
	}
}

// Line returns a pair's table row. The faults column has two numbers: the faults that had taken
// effect on the operator with the bug when the bug was found, and the faults that took effect on
// its twin.
func (r *Result) Line() string {
	cells := []string{"`" + r.Name + "`", r.Mistake, r.found(), fmt.Sprintf("%d, %d", r.Wrong.Reached, r.Right.Reached), r.alarms()}
	for i, cell := range cells {
		if len(cell) > widest {
			cell = strings.ToValidUTF8(cell[:widest], "") + "…"
		}
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// Short returns a one-line summary of a pair's result.
func (r *Result) Short() string {
	return fmt.Sprintf("%s: found as: %s; alarms of the twin: %s", r.Name, r.found(), r.alarms())
}

// found returns the oracle (the kind of check) that found the bug, or the reason why the bug was
// not found.
func (r *Result) found() string {
	switch {
	case r.Wrong.As != "":
		oracle, _, _ := strings.Cut(r.Wrong.As, ":")
		return oracle
	case r.Wrong.Err != nil:
		return "no verdict: " + r.Wrong.Err.Error()
	case len(r.Wrong.Found) > 0:
		return "no, but: " + strings.Join(r.Wrong.Found, "; ")
	}
	return "no"
}

// alarms returns the number and the headlines of the findings about the twin (the operator without
// the bug), or the reason why there is no verdict.
func (r *Result) alarms() string {
	switch {
	case r.Right.Err != nil:
		return "no verdict: " + r.Right.Err.Error()
	case len(r.Right.Found) > 0:
		return fmt.Sprintf("%d: %s", len(r.Right.Found), strings.Join(r.Right.Found, "; "))
	case r.Right.Reached == 0 && !r.Undisturbed:
		return "no verdict: no fault took effect"
	}
	return "none"
}

// Sum writes the summary line below the table. It returns true if the results of all pairs are OK.
func Sum(out io.Writer, results []Result) bool {
	found, alarms, unjudged, fine := 0, 0, 0, true
	for i := range results {
		r := &results[i]
		if r.Wrong.As != "" {
			found++
		}
		if r.Right.Err != nil || r.Right.Reached == 0 && !r.Undisturbed {
			unjudged++
		}
		alarms += len(r.Right.Found)
		fine = fine && r.OK()
	}
	fmt.Fprintf(out, "found %d of %d mistakes, %d alarms by %d twins", found, len(results), alarms, len(results))
	if unjudged > 0 {
		fmt.Fprintf(out, ", of which %d were not judged", unjudged)
	}
	fmt.Fprintln(out)
	return fine
}
