// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import (
	"fmt"
	"io"
	"strings"
)

// Head is the beginning of the table.
const Head = "| pair | the mistake | found | as | faults | alarms of the twin | faults |\n|---|---|---|---|---|---|---|\n"

// widest is how much of a headline is in the table.
const widest = 160

// Line is that of a pair in the table. Faults are those that took effect.
func (r *Result) Line() string {
	found := "no"
	switch {
	case r.Wrong.Err != nil:
		found = "no verdict: " + r.Wrong.Err.Error()
	case r.Wrong.As != "":
		found = "yes"
	case len(r.Wrong.Found) > 0:
		found = "no, but: " + strings.Join(r.Wrong.Found, "; ")
	}
	alarms := "none"
	switch {
	case r.Right.Err != nil:
		alarms = "no verdict: " + r.Right.Err.Error()
	case len(r.Right.Found) > 0:
		alarms = fmt.Sprintf("%d: %s", len(r.Right.Found), strings.Join(r.Right.Found, "; "))
	}
	cells := []string{r.Name, r.Mistake, found, r.Wrong.As, fmt.Sprint(r.Wrong.Reached), alarms, fmt.Sprint(r.Right.Reached)}
	for i, cell := range cells {
		if len(cell) > widest {
			cell = strings.ToValidUTF8(cell[:widest], "") + "…"
		}
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
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
