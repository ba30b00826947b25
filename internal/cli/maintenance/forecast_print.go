// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"strings"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// assumes maps each reason that prevents all drains until a user acts to a phrase. The phrase
// states the assumption on which the forecast is then based.
var assumes = map[string]string{
	tidekeeperv1.ReasonSuspended: "if it was resumed now", tidekeeperv1.ReasonFailureLimit: "if it went on now", tidekeeperv1.ReasonDeleting: "if it was not being deleted",
}

// print prints forecasts of maintenance rounds as tables and sentences.
func (o *forecastOptions) print(forecasts []forecastOutput) error {
	if len(forecasts) == 0 {
		o.Console.NothingFound("maintenances", "", false)
		return nil
	}
	out, s, now := o.Console.Out, o.Console.Screen, o.Now()
	for i, f := range forecasts {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, f.Name+": "+o.beginning(f))
		if f.Over || f.Left == 0 {
			continue
		}
		if f.Held != nil && assumes[f.Held.Reason] != "" {
			fmt.Fprintln(out, s.Paint(cmdutil.ColorOf(view.Warning), f.Held.Reason)+", "+term.Printable(f.Held.Message)+". "+assumes[f.Held.Reason]+":")
		}
		if f.Overdue > 0 {
			fmt.Fprintln(out, term.Plural(f.Overdue, "node")+" took longer than that already; assumed to be done now.")
		}
		if f.NextDrain != nil {
			fmt.Fprintln(out, "Next drain: "+o.when(*f.NextDrain))
		}
		fmt.Fprintln(out, "End:        "+o.end(f))
		if len(f.Windows) > 0 {
			fmt.Fprintln(out)
			t := &term.Table{Columns: []term.Column{{Header: "WINDOW (" + term.Zone(now, o.Local) + ")"}, {Header: "UNTIL"}, {Header: "NODES"}}}
			for _, w := range f.Windows {
				t.Rows = append(t.Rows, []term.Cell{term.Text(term.Moment(w.Opens, now, o.Local)), term.Text(term.Moment(w.Closes, now, o.Local)), term.Text(fmt.Sprint(w.Nodes))})
			}
			if err := o.Console.Write(t); err != nil {
				return err
			}
		}
		if f.Late {
			fmt.Fprintln(out, s.Paint(cmdutil.ColorOf(view.Bad), "Not through before the next round")+", which the schedule begins "+o.when(*f.NextRound)+".")
		}
	}
	return nil
}

// when formats a time at which something begins or ends. If the time is not in the future, the
// result is "now".
func (o *forecastOptions) when(t time.Time) string {
	if !t.After(o.Now()) {
		return "now"
	}
	return term.ComingInZone(t, o.Now(), o.Local)
}

// beginning describes the number of remaining nodes in a round, and the assumed duration of a
// node's maintenance.
func (o *forecastOptions) beginning(f forecastOutput) string {
	round := "in this round"
	switch {
	case f.Over:
		return "the round has ended, and none follows"
	case f.From != nil:
		round = "in the next round, " + o.when(*f.From)
	}
	if f.Left == 0 {
		return "no nodes " + round
	}
	each := "how long a node takes is not known"
	took := view.FormatDuration(time.Duration(f.PerNodeSeconds) * time.Second)
	switch {
	case o.perNode.Duration > 0:
		each = took + " each, as --per-node says"
	case f.MeasuredNodes > 0:
		each = fmt.Sprintf("%s each, the median of %s", took, term.Plural(f.MeasuredNodes, "node"))
	}
	return fmt.Sprintf("%s left %s, %d at a time, %s", term.Plural(f.Left, "node"), round, f.Limit, each)
}

// end describes the time at which the round ends, or the reason why that time is unknown.
func (o *forecastOptions) end(f forecastOutput) string {
	switch {
	case f.End != nil:
		return o.when(*f.End)
	case f.LimitUsedUp:
		return fmt.Sprintf("not known: no drain of %s begins while %s unavailable", term.Plural(f.NotStarted, "node"), areOr(f.Unavailable))
	case f.NotStarted > 0:
		return fmt.Sprintf("not known: within a year, no drain of %s begins", term.Plural(f.NotStarted, "node"))
	default:
		return "not known before the first node is done: give --per-node, such as --per-node 15m"
	}
}

// areOr joins names with commas, and appends "is" or "are".
func areOr(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}
