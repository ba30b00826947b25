// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"tidekeeper.dev/tidekeeper/internal/nodepool/preview"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Limits of a printed plan. Except for mostBlockers, they do not apply to -o wide.
const (
	mostNames  = 5  // maximum number of node names listed for a group of nodes with equal changes
	mostGroups = 20 // maximum number of listed groups of nodes with equal changes
	mostOwners = 20 // maximum number of listed workloads with affected pods
	// mostBlockers is the maximum number of listed PodDisruptionBudgets that do not allow
	// evictions.
	mostBlockers = 10
)

// printPlan prints a plan: a summary, the nodes grouped by equal changes, and the pods grouped by
// workload. If all is set, it lists each node and pod by name.
func printPlan(out io.Writer, plan *view.Plan, all bool, s term.Screen) error {
	for _, line := range planSummary(plan, s) {
		fmt.Fprintln(out, line)
	}
	printNodes(out, plan.Nodes, all, s)
	if len(plan.Pods) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if all {
		return podsTable(plan.Pods).WriteTo(out, s)
	}
	t, more := ownersTable(plan.Pods)
	if err := t.WriteTo(out, s); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(out, "and %s of other workloads; -o wide names them\n", term.Plural(more, "pod"))
	}
	return nil
}

// printNodes prints the planned changes of nodes, grouped by equal changes. If all is set, it
// prints each node separately.
func printNodes(out io.Writer, nodes []preview.Node, all bool, s term.Screen) {
	if len(nodes) == 0 {
		return
	}
	fmt.Fprintln(out)
	groups := view.GroupNodes(nodes)
	if all {
		groups = view.EachNode(nodes)
	}
	for i, g := range groups {
		if i == mostGroups && !all {
			rest := 0
			for _, g := range groups[i:] {
				rest += len(g.Names)
			}
			fmt.Fprintf(out, "and %s, each with changes of its own; -o wide names them\n", term.Plural(rest, "node"))
			return
		}
		for _, line := range groupLines(g, all, s) {
			fmt.Fprintln(out, line)
		}
	}
}

// planSummary returns the summary lines of a plan.
func planSummary(plan *view.Plan, s term.Screen) []string {
	var lines []string
	fact := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-15s%s", name, term.Printable(fmt.Sprintf(format, args...))))
	}
	becomes := map[string]string{
		view.PoolCreated: "would be created", view.PoolChanged: "would change", view.PoolDeleted: "would be deleted", view.PoolUnchanged: "would not change",
	}
	for i, p := range plan.Pools {
		fact(onFirst(i, "Pools:"), "NodePool %q %s", p.Name, becomes[p.Action])
	}
	if !plan.Changes() {
		return append(lines, "Nothing would change on nodes or pods.")
	}
	c := plan.Counts()
	fact("Nodes:", "%d would change, %d join, %d leave", c.Changed, c.Joining, c.Leaving)
	if c.ConflictsBegin+c.ConflictsEnd > 0 {
		fact("Conflicts:", "begin on %s, end on %d", term.Plural(c.ConflictsBegin, "node"), c.ConflictsEnd)
	}
	if c.NeverSettle > 0 {
		fact("Never settle:", "%s: the pools' own labels keep moving them in and out of pools", term.Plural(c.NeverSettle, "node"))
	}
	for _, p := range plan.Pools {
		if p.RuntimeClass != nil {
			fact("RuntimeClass:", "%s", formatRuntimeClass(p.RuntimeClass))
		}
	}
	for i, text := range podFacts(plan, c, s) {
		lines = append(lines, fmt.Sprintf("%-15s%s", onFirst(i, "Pods:"), text))
	}
	for i, b := range plan.Blockers {
		if i == mostBlockers {
			fact("", "and %d more", len(plan.Blockers)-i)
			break
		}
		fact(onFirst(i, "Would wait:"), "%s/%s (%s): %s", b.Namespace, b.Workload, term.Plural(b.Count, "pod"), b.Message)
	}
	return lines
}

// podFacts describes the plan's consequences for pods, with a phrase for each kind of consequence.
// c holds the numbers of affected pods.
func podFacts(plan *view.Plan, c view.PlanCounts, s term.Screen) (facts []string) {
	if plan.Pods == nil {
		return []string{"unknown"}
	}
	if c.Evicted > 0 {
		how := ""
		switch c.WithinBudgets {
		case 0:
		case c.Evicted:
			how = " within their budgets"
		default:
			how = fmt.Sprintf(", %d of them within their budgets", c.WithinBudgets)
		}
		facts = append(facts, s.Paint(term.Red, fmt.Sprintf("%d would be evicted from %s%s, a few nodes at a time", c.Evicted, term.Plural(c.EvictedFrom, "node"), how)))
	}
	if c.NotReschedulable > 0 {
		facts = append(facts, fmt.Sprintf("%d would keep running, but could not be rescheduled there", c.NotReschedulable))
	}
	if c.NotRecreatable > 0 {
		facts = append(facts, s.Paint(term.Red, fmt.Sprintf("%d would keep running, but could not be created again without their RuntimeClass", c.NotRecreatable)))
	}
	switch {
	case len(facts) == 0:
		return []string{"none would be evicted, and all could be rescheduled there"}
	case c.Evicted == 0:
		facts[0] = "none would be evicted; " + facts[0]
	}
	return facts
}

func formatRuntimeClass(p *preview.RuntimeClass) string {
	switch p.Action {
	case "Create":
		return fmt.Sprintf("%s would be created, handler %s", p.Name, p.To)
	case "Update":
		return fmt.Sprintf("scheduling of %s (node selector, tolerations) would change", p.Name)
	case "Replace":
		return fmt.Sprintf("%s would be replaced: handler %s, now %s", p.Name, p.To, p.From)
	case preview.ActionConflict:
		return fmt.Sprintf("%s exists and does not belong to the pool, which would report RuntimeClassConflict", p.Name)
	default:
		return p.Name + " would be deleted"
	}
}

// groupLines describes the changes of a group of nodes with equal changes, line by line. It cuts
// long lines at the width of the screen unless all is set.
func groupLines(g *view.NodeGroup, all bool, s term.Screen) []string {
	var lines []string
	add := func(c term.Color, text string) {
		text = term.Printable(text)
		if s.Width > 0 && !all {
			text = s.Truncate(text, s.Width)
		}
		lines = append(lines, s.Paint(c, text))
	}
	add(term.Plain, formatNodes(g.Names))
	for _, pool := range g.Joins {
		add(term.Green, fmt.Sprintf("  joins pool %q", pool))
	}
	for _, pool := range g.Leaves {
		add(term.Red, fmt.Sprintf("  leaves pool %q", pool))
	}
	for _, c := range g.Changes {
		add(formatChange(c))
	}
	for _, c := range g.ConflictsBegin {
		add(term.Red, fmt.Sprintf("  ! %s %s stays with pool %q, which is older; pool %q does not get it", c.Kind, c.Key, c.Owner, c.Pool))
	}
	for _, c := range g.ConflictsEnd {
		add(term.Green, fmt.Sprintf("  ! %s %s: the conflict of pool %q ends", c.Kind, c.Key, c.Pool))
	}
	if g.NeverSettles {
		add(term.Red, "  ! never settles")
	}
	return lines
}

// formatNodes lists the names of nodes. It omits some names if there are many nodes.
func formatNodes(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "node " + names[0]
	case n <= mostNames:
		return fmt.Sprintf("%d nodes: %s", n, strings.Join(names, ", "))
	default:
		return fmt.Sprintf("%d nodes: %s and %d more", n, strings.Join(names[:mostNames], ", "), n-mostNames)
	}
}

// formatChange describes the planned change of a node's label, annotation or taint, and returns the
// color in which to print it.
func formatChange(c preview.Change) (term.Color, string) {
	value := c.To
	color, mark, note := term.Green, "+", ""
	switch c.Action {
	case preview.ActionChange:
		color, mark, note = term.Yellow, "~", fmt.Sprintf(" instead of %q", c.From)
	case preview.ActionRemove:
		color, mark, value = term.Red, "-", c.From
	}
	if c.External {
		note += ", which no pool has set and none would restore"
	}
	return color, fmt.Sprintf("  %s %s %s%s", mark, c.Kind, setting.Format(c.SettingKey(), value), note)
}

// outcomeCell describes the plan's effect on a pod, such as "evicted".
func outcomeCell(p preview.Pod) term.Cell {
	evicted := "evicted"
	if p.WithinBudgets {
		evicted = "evicted within budgets"
	}
	switch {
	case p.Outcome == preview.OutcomeNotReschedulable:
		return term.Painted(term.Yellow, "not reschedulable")
	case p.Outcome == preview.OutcomeNotRecreatable:
		return term.Painted(term.Red, "could not be created again")
	case p.AfterSeconds > 0:
		return term.Painted(term.Red, evicted+" after "+duration.HumanDuration(time.Duration(p.AfterSeconds)*time.Second))
	default:
		return term.Painted(term.Red, evicted)
	}
}

// podNote explains why an affected pod would not be recreated, or would not be recreated on another
// node. It returns "" for other pods.
func podNote(p preview.Pod) string {
	switch {
	case p.NotRecreatable != "":
		return "cannot be created again: " + p.NotRecreatable + " would be deleted"
	case p.Static:
		return "static: restarted by its kubelet"
	case p.Owner == "":
		return "has no controller: not recreated"
	case strings.HasPrefix(p.Owner, "DaemonSet/"):
		return "not recreated on these nodes"
	default:
		return ""
	}
}

// ownersTable returns a table of the affected pods, grouped by workload and outcome. `more` is the
// number of pods that the table omits.
func ownersTable(pods []preview.Pod) (t *term.Table, more int) {
	t = &term.Table{Columns: []term.Column{
		{Header: "NAMESPACE", Name: true}, {Header: "WORKLOAD", Name: true}, {Header: "PODS"}, {Header: "NODES", Drop: 1}, {Header: "OUTCOME"},
		{Header: "BECAUSE OF", Text: 20}, {Header: "NOTE", Text: 15, Drop: 2},
	}}
	for i, g := range view.GroupPods(pods) {
		if i >= mostOwners {
			more += g.Pods
			continue
		}
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(g.Namespace), term.Text(cmp.Or(g.Owner, "Pod/"+g.Name)), term.Text(fmt.Sprint(g.Pods)), term.Text(fmt.Sprint(g.Nodes)),
			outcomeCell(g.Pod), term.Text(g.Because), term.Text(podNote(g.Pod)),
		})
	}
	return t, more
}

// podsTable returns a table with a row for each affected pod.
func podsTable(pods []preview.Pod) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "NAMESPACE", Name: true}, {Header: "POD", Name: true}, {Header: "NODE", Name: true}, {Header: "WORKLOAD", Name: true, Drop: 2}, {Header: "OUTCOME"},
		{Header: "BECAUSE OF", Text: 20}, {Header: "NOTE", Text: 15, Drop: 1},
	}}
	for _, p := range pods {
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(p.Namespace), term.Text(p.Name), term.Text(p.Node), term.Text(cmp.Or(p.Owner, "-")), outcomeCell(p), term.Text(p.Because), term.Text(podNote(p)),
		})
	}
	return t
}
