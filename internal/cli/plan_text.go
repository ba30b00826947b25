// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"tidekeeper.dev/tidekeeper/internal/nodepool"
)

// How much of a plan people are shown, unless they ask for all of it.
const (
	mostNames  = 5  // of the nodes that change alike
	mostGroups = 20 // of such nodes
	mostOwners = 20 // of pods
)

// printPlan prints a plan for people: what it comes to, then the nodes, those
// that change alike together, then the pods by workload. With all, each node and
// pod is named.
func printPlan(out io.Writer, plan *poolsPlan, all bool, s screen) error {
	for _, line := range planSummary(plan, s) {
		fmt.Fprintln(out, line)
	}
	if len(plan.Nodes) > 0 {
		fmt.Fprintln(out)
	}
	groups := alike(plan.Nodes, all)
	for i, g := range groups {
		if i == mostGroups && !all {
			rest := 0
			for _, g := range groups[i:] {
				rest += len(g.names)
			}
			fmt.Fprintf(out, "and %s, each with changes of its own; -o wide names them\n", plural(rest, "node"))
			break
		}
		for _, line := range g.lines(all, s) {
			fmt.Fprintln(out, line)
		}
	}
	if len(plan.Pods) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if all {
		return podsTable(plan.Pods).writeTo(out, s)
	}
	t, more := ownersTable(plan.Pods)
	if err := t.writeTo(out, s); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(out, "and %s of other workloads; -o wide names them\n", plural(more, "pod"))
	}
	return nil
}

// planSummary says what a plan comes to.
func planSummary(plan *poolsPlan, s screen) []string {
	var lines []string
	fact := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-15s%s", name, printable(fmt.Sprintf(format, args...))))
	}
	becomes := map[string]string{"Create": "would be created", "Change": "would change", "Delete": "would be deleted", "None": "would stay as it is"}
	for i, p := range plan.Pools {
		fact(first(i, "Pools:"), "%s %s", p.Name, becomes[p.Action])
	}
	if !plan.changes() {
		return append(lines, "Nothing would change on nodes or pods.")
	}
	var changed, joins, leaves, conflicts, ends, restless int
	for _, n := range plan.Nodes {
		changed += min(len(n.Changes), 1)
		joins += min(len(n.Joins), 1)
		leaves += min(len(n.Leaves), 1)
		conflicts += min(len(n.ConflictsBegin), 1)
		ends += min(len(n.ConflictsEnd), 1)
		if n.Restless {
			restless++
		}
	}
	fact("Nodes:", "%d would change, %d join, %d leave", changed, joins, leaves)
	if conflicts+ends > 0 {
		fact("Conflicts:", "begin on %s, end on %d", plural(conflicts, "node"), ends)
	}
	if restless > 0 {
		fact("Never at rest:", "%s: what pools put there moves it in and out of pools without end", plural(restless, "node"))
	}
	for _, p := range plan.Pools {
		if p.RuntimeClass != nil {
			fact("RuntimeClass:", "%s", runtimeClassWords(p.RuntimeClass))
		}
	}
	if plan.Pods == nil {
		fact("Pods:", "unknown")
		return lines
	}
	evicted, stranded := 0, 0
	from := map[string]bool{}
	for _, p := range plan.Pods {
		if p.Fate == nodepool.FateEvicted {
			evicted++
			from[p.Node] = true
		} else {
			stranded++
		}
	}
	switch {
	case evicted > 0:
		lines = append(lines, fmt.Sprintf("%-15s%s", "Pods:", s.paint(red, fmt.Sprintf("%d would be evicted from %s, a share of the nodes at a time", evicted, plural(len(from), "node")))))
		if stranded > 0 {
			fact("", "%d would stay, and could not come back once they end", stranded)
		}
	case stranded > 0:
		fact("Pods:", "none would be evicted; %d would stay, and could not come back once they end", stranded)
	default:
		fact("Pods:", "none would be evicted or kept from coming back")
	}
	return lines
}

func runtimeClassWords(p *nodepool.RuntimeClassPreview) string {
	switch p.Action {
	case "Create":
		return fmt.Sprintf("%s would be created, handler %s", p.Name, p.To)
	case "Update":
		return fmt.Sprintf("%s would get other scheduling", p.Name)
	case "Replace":
		return fmt.Sprintf("%s would be replaced: handler %s, now %s", p.Name, p.To, p.From)
	case nodepool.ActionConflict:
		return fmt.Sprintf("%s exists and is not the pool's: the pool would say RuntimeClassConflict", p.Name)
	default:
		return p.Name + " would be deleted"
	}
}

// group is nodes that change alike.
type group struct {
	names []string
	nodepool.NodePreview
}

// alike puts the nodes together that change alike, most first; or with all, each
// by itself, by name.
func alike(nodes []nodepool.NodePreview, all bool) []*group {
	var groups []*group
	known := map[string]*group{}
	for _, n := range nodes {
		name := n.Name
		n.Name = ""
		if all {
			n.Name = name
		}
		change, err := json.Marshal(n)
		if err != nil {
			panic("a preview is always JSON: " + err.Error())
		}
		g := known[string(change)]
		if g == nil {
			g = &group{NodePreview: n}
			known[string(change)] = g
			groups = append(groups, g)
		}
		g.names = append(g.names, name)
	}
	if !all {
		slices.SortStableFunc(groups, func(a, b *group) int { return len(b.names) - len(a.names) })
	}
	return groups
}

// lines says what becomes of the nodes of a group.
func (g *group) lines(all bool, s screen) []string {
	var lines []string
	say := func(h hue, text string) {
		text = printable(text)
		if s.width > 0 && !all {
			text = cut(text, s.width)
		}
		lines = append(lines, s.paint(h, text))
	}
	say(plain, nodesWords(g.names))
	for _, pool := range g.Joins {
		say(green, "  joins the pool "+pool)
	}
	for _, pool := range g.Leaves {
		say(red, "  leaves the pool "+pool)
	}
	for _, c := range g.Changes {
		say(slotWords(c))
	}
	for _, c := range g.ConflictsBegin {
		say(red, fmt.Sprintf("  ! %s %s: the older pool %s has it, %s asks for it in vain", c.Kind, c.Key, c.Owner, c.Pool))
	}
	for _, c := range g.ConflictsEnd {
		say(green, fmt.Sprintf("  ! %s %s: %s no longer asks for it in vain", c.Kind, c.Key, c.Pool))
	}
	if g.Restless {
		say(red, "  ! never comes to rest")
	}
	return lines
}

// nodesWords names nodes: all of a few, some of many.
func nodesWords(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "node " + names[0]
	case n <= mostNames:
		return fmt.Sprintf("%d nodes: %s", n, strings.Join(names, ", "))
	default:
		return fmt.Sprintf("%d nodes: %s and %d more", n, strings.Join(names[:mostNames], ", "), n-mostNames)
	}
}

// slotWords says how a label, annotation or taint changes.
func slotWords(c nodepool.SlotPreview) (hue, string) {
	value := c.To
	h, mark, note := green, "+", ""
	switch c.Action {
	case nodepool.ActionChange:
		h, mark, note = yellow, "~", fmt.Sprintf(", now %q", c.From)
	case nodepool.ActionRemove:
		h, mark, value = red, "-", c.From
	}
	if c.Foreign {
		note += ", which no pool has put there"
	}
	// A taint is written key=value:effect, as kubectl does.
	text := c.Key + "=" + value
	if c.Kind == "taint" {
		key, effect := c.Key[:strings.LastIndex(c.Key, ":")], c.Key[strings.LastIndex(c.Key, ":"):]
		text = key + effect
		if value != "" {
			text = key + "=" + value + effect
		}
	}
	return h, fmt.Sprintf("  %s %s %s%s", mark, c.Kind, text, note)
}

// fateWords says what becomes of a pod.
func fateWords(p nodepool.PodPreview) (text string, h hue) {
	switch {
	case p.Fate == nodepool.FateStranded:
		return "could not come back", yellow
	case p.AfterSeconds > 0:
		return "evicted after " + duration.HumanDuration(time.Duration(p.AfterSeconds)*time.Second), red
	default:
		return "evicted", red
	}
}

// noteWords says what is special about a pod that goes.
func noteWords(p nodepool.PodPreview) string {
	switch {
	case p.Static:
		return "static: its kubelet starts it again"
	case p.Owner == "":
		return "nobody starts it again"
	case strings.HasPrefix(p.Owner, "DaemonSet/"):
		return "no other comes to these nodes"
	default:
		return ""
	}
}

// ownersTable are the pods by workload, most first, and how many pods more there
// are.
func ownersTable(pods []nodepool.PodPreview) (t *table, more int) {
	type kin struct {
		nodepool.PodPreview
		pods  int
		nodes map[string]bool
	}
	var all []*kin
	known := map[nodepool.PodPreview]*kin{}
	for _, p := range pods {
		node := p.Node
		p.Node = ""
		if p.Owner != "" {
			p.Name = ""
		}
		k := known[p]
		if k == nil {
			k = &kin{PodPreview: p, nodes: map[string]bool{}}
			known[p] = k
			all = append(all, k)
		}
		k.pods++
		k.nodes[node] = true
	}
	slices.SortStableFunc(all, func(a, b *kin) int {
		return cmp.Or(cmp.Compare(a.Fate, b.Fate), b.pods-a.pods)
	})
	t = &table{header: []string{"NAMESPACE", "WORKLOAD", "PODS", "NODES", "FATE", "BECAUSE OF", "NOTE"}}
	for i, k := range all {
		if i >= mostOwners {
			more += k.pods
			continue
		}
		fate, h := fateWords(k.PodPreview)
		t.rows = append(t.rows, []cell{
			{k.Namespace, plain}, {cmp.Or(k.Owner, "Pod/"+k.Name), plain}, {fmt.Sprint(k.pods), plain}, {fmt.Sprint(len(k.nodes)), plain},
			{fate, h}, {k.Because, plain}, {noteWords(k.PodPreview), plain},
		})
	}
	return t, more
}

// podsTable are all pods by name.
func podsTable(pods []nodepool.PodPreview) *table {
	t := &table{header: []string{"NAMESPACE", "POD", "NODE", "WORKLOAD", "FATE", "BECAUSE OF", "NOTE"}}
	for _, p := range pods {
		fate, h := fateWords(p)
		t.rows = append(t.rows, []cell{
			{p.Namespace, plain}, {p.Name, plain}, {p.Node, plain}, {cmp.Or(p.Owner, "-"), plain}, {fate, h}, {p.Because, plain}, {noteWords(p), plain},
		})
	}
	return t
}
