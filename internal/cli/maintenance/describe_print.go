// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// mostAlike is the maximum number of nodes that the table lists for each phase of a node's
// maintenance that needs no attention from the user. The flag --all lists all nodes.
const mostAlike = 10

// print prints the description of a NodeMaintenance.
func (o *describeOptions) print(d view.MaintenanceDetail) error {
	out, s, now := o.Console.Out, o.Console.Screen, o.Now()
	fact := func(name, text string) { fmt.Fprintf(out, "%-11s%s\n", name, text) }
	fact("Name:", d.Name)
	status := s.Paint(cmdutil.ColorOf(d.Status.Severity), d.Status.Reason)
	if d.Status.Message != "" {
		status += ", " + term.Printable(d.Status.Message)
	}
	fact("Status:", status)
	fact("Selects:", term.Printable(d.Selects))
	limit := fmt.Sprintf("%s at a time", term.Plural(d.Limit, "node"))
	if d.ZoneLimit > 0 {
		limit += fmt.Sprintf(", %d in each zone", d.ZoneLimit)
	}
	fact("Limit:", limit)
	fact("Until:", d.Until)
	zone := ""
	if d.TimeZone != "" {
		zone = " (" + d.TimeZone + ")"
	}
	if d.Schedule != "" {
		fact("Schedule:", d.Schedule+zone)
	}
	for i, w := range d.Windows {
		name := "Windows:"
		if i > 0 {
			name = ""
		}
		fact(name, w+zone)
	}
	if d.Round != nil {
		fact("Round:", fmt.Sprintf("of %s: %d of %s done, %d running, %d failed", term.Moment(*d.Round, now, o.Local), d.Done, term.Plural(int(d.Nodes), "node"), d.Running, d.Failed))
	}
	if d.NextRound != nil {
		fact("Next:", term.ComingInZone(*d.NextRound, now, o.Local))
	}
	if d.Held != nil {
		fact("Held:", s.Paint(cmdutil.ColorOf(view.Warning), d.Held.Reason)+", "+term.Printable(d.Held.Message))
	}
	fmt.Fprintln(out)
	if err := o.printNodes(d); err != nil || len(d.Events) == 0 {
		return err
	}
	fmt.Fprintln(out)
	t := &term.Table{Columns: []term.Column{{Header: "AGE"}, {Header: "TYPE", Drop: 1}, {Header: "REASON"}, {Header: "MESSAGE", Text: 30}}}
	for _, e := range d.Events {
		t.Rows = append(t.Rows, []term.Cell{term.Text(term.Ago(e.LastSeen, now)), term.Text(e.Type), term.Text(e.Reason), term.Text(e.Message)})
	}
	return o.Console.Write(t)
}

// printNodes prints the table of the nodes of a maintenance round.
func (o *describeOptions) printNodes(d view.MaintenanceDetail) error {
	if len(d.Members) == 0 {
		fmt.Fprintln(o.Console.Out, "No nodes.")
		return nil
	}
	if !d.Begun {
		fmt.Fprintln(o.Console.Out, "Nodes of the next round:")
	}
	now := o.Now()
	t := &term.Table{Columns: []term.Column{
		{Header: "NODE", Name: true}, {Header: "PHASE", Name: true}, {Header: "SINCE", Drop: 1}, {Header: "REASON"}, {Header: "MESSAGE", Text: 20, Drop: 3}, {Header: "WHAT TO DO", Text: 12, Drop: 2},
	}}
	shown, omitted := map[tidekeeperv1.NodePhase]int{}, map[tidekeeperv1.NodePhase]int{}
	for _, n := range d.Members {
		if shown[n.Phase]++; !o.all && shown[n.Phase] > mostAlike && !n.Running() && n.Phase != tidekeeperv1.NodeFailed {
			omitted[n.Phase]++
			continue
		}
		since := "-"
		if n.Since != nil {
			since = term.Ago(*n.Since, now)
		}
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(n.Name), term.Painted(cmdutil.ColorOf(n.Severity()), string(n.Phase)), term.Text(since), orDash(n.Reason), orDash(n.Message), orDash(n.Advice),
		})
	}
	if err := o.Console.Write(t); err != nil {
		return err
	}
	var more []string
	for _, phase := range []tidekeeperv1.NodePhase{view.PhaseWaiting, tidekeeperv1.NodeReleased, tidekeeperv1.NodeDone} {
		if n := omitted[phase]; n > 0 {
			more = append(more, fmt.Sprintf("%d %s", n, phase))
		}
	}
	if len(more) > 0 {
		fmt.Fprintf(o.Console.Out, "and %s: --all shows them\n", strings.Join(more, ", "))
	}
	return nil
}

// orDash returns a cell with the text, or with a hyphen if the text is empty.
func orDash(text string) term.Cell {
	if text == "" {
		return term.Text("-")
	}
	return term.Text(text)
}
