// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import (
	"fmt"
	"io"
	"strings"
)

// Head is the beginning of the table.
const Head = "| pair | the mistake | found as | faults | alarms of the twin |\n|---|---|---|---|---|\n"

// widest is how much of a headline is in the table.
const widest = 160

// Table writes what came of all pairs, those with a wrong verdict first.
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

// Line is that of a pair in the table. Faults are those that took effect, on the operator with the
// mistake until that was found, and on its twin.
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

// Short is what came of a pair, in a line.
func (r *Result) Short() string {
	return fmt.Sprintf("%s: found as: %s; alarms of the twin: %s", r.Name, r.found(), r.alarms())
}

// found says as what the mistake was.
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

// alarms says what was found in the twin.
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

// Sum writes the last line of the table, and reports whether all were found, and without an alarm.
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
