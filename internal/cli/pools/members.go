// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// A pool with more than manyMembers nodes is shown as a histogram, with a table of the fewMembers
// fullest nodes. The fullest nodes have the highest requested percentage of any resource.
const (
	manyMembers = 40
	fewMembers  = 10
)

// roomLines describes the pool's free resources, the resources that new pods cannot use, the
// largest pods that fit, and the largest consumers. Each line consists of a label, which may be "",
// and a text.
func roomLines(d view.PoolDetail) (lines [][2]string) {
	r := d.Room
	if r == nil || r.Nodes == 0 {
		return nil
	}
	add := func(name, text string) { lines = append(lines, [2]string{name, text}) }
	add("Free:", view.FreeText(r))
	if text := d.DevicesText(); text != "" {
		add("Devices:", text)
	}
	for i, l := range r.Lost {
		add(onFirst(i, "Lost:"), view.LostText(l))
	}
	for i, s := range r.LargestFits {
		add(onFirst(i, "Fits now:"), view.LargestFitText(s))
	}
	if text := view.DaemonSetsText(r); text != "" {
		add("DaemonSets:", text)
	}
	if by := d.FilledBy; by != nil {
		add("Filled by:", sharesText(by.Namespaces)+" of the requested CPU")
		add("", sharesText(by.Workloads))
	}
	return lines
}

// sharesText lists namespaces or workloads with their percentages of the requested CPU, rounded so
// that they add up to 100.
func sharesText(shares []capacity.Share) string {
	texts := make([]string, len(shares))
	for i, s := range view.WholePercents(shares) {
		texts[i] = fmt.Sprintf("%s %d%%", s.Name, s.Percent)
	}
	return strings.Join(texts, ", ")
}

// printMembers prints a table of all nodes of a pool. If there are more than manyMembers nodes and
// all is not set, it prints a histogram, and a table of the nodes with the highest requested
// percentages.
func printMembers(out io.Writer, members []view.Member, all bool, now time.Time, s term.Screen) error {
	if all || len(members) <= manyMembers {
		return membersTable(members, now).WriteTo(out, s)
	}
	if err := histogram(members).WriteTo(out, s); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe %d fullest of %d nodes; --all shows all:\n", fewMembers, len(members))
	return membersTable(members[:fewMembers], now).WriteTo(out, s)
}

// histogram returns a table with the number of nodes in each range of requested percentages. The
// percentage of a node is the highest percentage of any of its resources. Empty ranges are omitted.
func histogram(members []view.Member) *term.Table {
	classes := view.Histogram(members)
	most := 0
	for _, c := range classes {
		most = max(most, c.Nodes)
	}
	t := &term.Table{Bars: levelBars, Columns: []term.Column{{Header: "FULLEST RESOURCE"}, {Header: "NODES"}}}
	for _, c := range classes {
		if c.Nodes > 0 {
			t.Rows = append(t.Rows, []term.Cell{term.Text(c.Text), {Text: fmt.Sprint(c.Nodes), Bar: &term.Bar{Share: float64(c.Nodes) / float64(most)}, BarText: len(fmt.Sprint(most))}})
		}
	}
	return t
}

// membersTable returns a table with a row for each node of a pool.
func membersTable(members []view.Member, now time.Time) *term.Table {
	t := &term.Table{Bars: levelBars[1:], Columns: []term.Column{
		{Header: "NODE", Name: true}, {Header: "READY"}, {Header: "CPU"}, {Header: "MEMORY"}, {Header: "PODS"}, {Header: "LACKS", Text: 20},
	}}
	for _, m := range members {
		ready := term.Painted(term.Red, "no")
		if m.Ready {
			ready = term.Text("yes")
		}
		row := []term.Cell{term.Text(m.Name), ready}
		for _, name := range levelColumns {
			row = append(row, levelCell(m.Levels, name))
		}
		lacks := term.Text("-")
		if len(m.Lacks) > 0 {
			text := strings.Join(m.Lacks, ", ")
			if m.ClosedSince != nil {
				text += ", being emptied for " + term.Ago(m.ClosedSince.Time, now)
			}
			lacks = term.Painted(term.Yellow, text)
		}
		t.Rows = append(t.Rows, append(row, lacks))
	}
	return t
}
