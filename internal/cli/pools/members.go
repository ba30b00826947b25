// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"io"
	"math"
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/term"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// A pool with more than manyMembers nodes is shown by a histogram and its fewMembers fullest.
const (
	manyMembers = 40
	fewMembers  = 10
)

// causeTexts are the causes why resources cannot be used, in words.
var causeTexts = map[tidekeeperv1.LostCause]string{
	tidekeeperv1.LostBeingDeleted: "being deleted", tidekeeperv1.LostNotReady: "not ready", tidekeeperv1.LostCordoned: "cordoned",
	tidekeeperv1.LostForeignTaint: "another taint", tidekeeperv1.LostNoPodSlot: "no pod slot left",
}

// roomLines are the facts about what new pods can use of the nodes.
func roomLines(d view.PoolDetail) (lines [][2]string) {
	r := d.Room
	if r == nil || r.Nodes == 0 {
		return nil
	}
	add := func(name, text string) { lines = append(lines, [2]string{name, text}) }
	add("Free:", fmt.Sprintf("%s, on %d of %s", resources.Text(r.Free), r.UsableNodes, term.Plural(r.Nodes, "node")))
	for i, l := range r.Lost {
		add(onFirst(i, "Lost:"), fmt.Sprintf("%s: %s, %s", causeTexts[l.Cause], term.Plural(int(l.Nodes), "node"), resources.Text(l.Resources)))
	}
	for i, s := range r.Slots {
		add(onFirst(i, "Fits now:"), slotText(s))
	}
	if pods := r.DaemonSets["pods"]; !pods.IsZero() {
		add("DaemonSets:", fmt.Sprintf("%s; an empty node has %s left", resources.Text(r.DaemonSets), resources.Text(r.EmptyNode.Resources)))
	}
	if by := d.FilledBy; by != nil {
		add("Filled by:", sharesText(by.Namespaces)+" of the requested CPU")
		add("", sharesText(by.Workloads))
	}
	return lines
}

// sharesText are names with their shares, rounded so that they still add up to 100.
func sharesText(shares []capacity.Share) string {
	texts := make([]string, len(shares))
	sum, shown := 0.0, 0
	for i, s := range shares {
		name := s.Name
		if name == "" {
			name = "the rest"
		}
		sum += s.Percent
		percent := int(math.Round(sum)) - shown
		shown += percent
		texts[i] = fmt.Sprintf("%s %d%%", name, percent)
	}
	return strings.Join(texts, ", ")
}

// printMembers prints the nodes, or, if there are many and not all are wanted, how many there
// are of each level and the fullest.
func printMembers(out io.Writer, members []view.Member, all bool, s term.Screen) error {
	if all || len(members) <= manyMembers {
		return membersTable(members).WriteTo(out, s)
	}
	if err := histogram(members).WriteTo(out, s); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe %d fullest of %d nodes; --all shows all:\n", fewMembers, len(members))
	return membersTable(members[:fewMembers]).WriteTo(out, s)
}

// histogram is how many nodes there are by the level of their fullest resource.
func histogram(members []view.Member) *term.Table {
	var counts [11]int
	most := 0
	for i := range members {
		class := min(int(members[i].Fullest())/10, len(counts)-1)
		counts[class]++
		most = max(most, counts[class])
	}
	t := &term.Table{Bars: levelBars, Columns: []term.Column{{Header: "FULLEST RESOURCE"}, {Header: "NODES"}}}
	for class := len(counts) - 1; class >= 0; class-- {
		if counts[class] == 0 {
			continue
		}
		level := fmt.Sprintf("%d–%d%%", 10*class, 10*class+9)
		if class == len(counts)-1 {
			level = "100% or more"
		}
		t.Rows = append(t.Rows, []term.Cell{term.Text(level), {Text: fmt.Sprint(counts[class]), Bar: &term.Bar{Share: float64(counts[class]) / float64(most)}, BarText: len(fmt.Sprint(most))}})
	}
	return t
}

// membersTable are the nodes, the fullest first.
func membersTable(members []view.Member) *term.Table {
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
			lacks = term.Painted(term.Yellow, strings.Join(m.Lacks, ", "))
		}
		t.Rows = append(t.Rows, append(row, lacks))
	}
	return t
}
