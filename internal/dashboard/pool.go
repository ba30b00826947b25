// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// mostNodeRows is the maximum number of nodes in the table on a pool's page. firstNodeRows is the
// maximum below a histogram in which the user has chosen no level: a browser needs as long for 30
// rows as for a map of 600 nodes. mostPodRows is the maximum length of each list in the node panel:
// the pods, and the pods that block a drain.
const (
	mostNodeRows  = 50
	firstNodeRows = 20
	mostPodRows   = 30
	// mostFewNodes is the number of nodes up to which a pool's page has no histogram, because a
	// table suffices.
	mostFewNodes = 40
)

// poolData is the template data of a pool's page.
type poolData struct {
	*view.PoolDetail
	Problems []string
	// NoNodes and NoPods explain why the nodes and pods are unknown. Each is "" if the data is
	// known.
	NoNodes, NoPods string
	Tides           []tide
	Used            string
	Facts           []fact
	LargestFits     []string
	Filled          []filledBy
	Losses          []lossRow
	Pending         []pendingRow
	Map             *nodeMap
	Nodes           []nodeRow
	// More is the number of nodes that the table omits.
	More   int
	Node   *nodePanel
	Shown  []choice // links that select the resource that the node map shows
	Groups []choice
	Events []eventRow
	// NoEvents explains why the events are unknown.
	NoEvents string
	CutOff   string // selected range of levels in the histogram
	// Few is set if the pool has so few nodes that no histogram is needed. Measured is set if the
	// measured usage of the nodes is known.
	Few, Measured bool
}

// eventRow shows an event about the pool, with the time of its last occurrence.
type eventRow struct {
	view.Event
	Seen shownTime
}

// fact is a labeled line of text about a pool.
type fact struct{ Name, Text string }

// filledBy lists the percentages of the requested CPU that each namespace or each workload
// requests. Of is "namespace" or "workload".
type filledBy struct {
	Of     string
	Shares []view.NamedPercent
}

// nodeRow is a table row that shows a node of a pool.
type nodeRow struct {
	view.Member
	Zone, State string
	Bars        []levelBar
	Class       int
	Href        string
	Chosen      bool
}

// poolPage builds the page about a pool.
func poolPage(r *request) (*page, error) {
	pools, s := r.snapshot.pools(), r.snapshot
	i := slices.IndexFunc(pools, func(p *tidekeeperv1.NodePool) bool { return p.Name == r.argument })
	if i < 0 {
		if err := s.unknown(kindPools); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("NodePool %q: %w", r.argument, errNotFound)
	}
	pool := pools[i]
	detail, err := r.model.detail(s, pool)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(detail.Members))
	for i, m := range detail.Members {
		names[i] = m.Name
	}
	metrics := r.asks.nodeMetrics()
	detail.Used, detail.NoMetrics = metrics.UsedBy(names, r.now())
	events, noEvents := r.events(ObjectRef{Kind: "NodePool", Namespace: metav1.NamespaceDefault, Name: pool.Name})
	if detail.Events = nil; noEvents == "" {
		detail.Events = view.Events(events)
	}
	d := &poolData{PoolDetail: &detail, NoEvents: noEvents, Problems: s.problemsOf(kindNodes, kindPods), NoNodes: s.problem(kindNodes), NoPods: s.problem(kindNodes, kindPods), Used: detail.UsedLine()}
	for _, e := range detail.Events {
		d.Events = append(d.Events, eventRow{e, ago(e.LastSeen, r.now(), r.local())})
	}
	d.addLevels()
	room, losses := r.model.parts()
	d.addNodes(s, r.address, room)
	if d.Node != nil && d.Node.Loss != nil {
		d.Node.Drain = r.drainPanelOf(d.Node.node, d.Node.Loss.Loss)
	}
	if d.Node != nil {
		d.Node.Maintenance = r.maintenancePanelOf(d.Node.node)
	}
	if room != nil {
		d.addQuestions(room, losses)
	}
	return &page{title: pool.Name, template: "pool", data: d, json: &detail, command: []string{"pools", "describe", pool.Name}, unknown: s.unknown(kindNodes)}, nil
}

// addLevels adds the bars that show each resource's allocatable, usable, requested and used
// amounts.
func (d *poolData) addLevels() {
	room := d.Room
	d.Measured = d.PoolDetail.Used != nil
	for _, l := range d.Levels {
		d.Tides = append(d.Tides, tideOf(l, room, d.PoolDetail.Used))
	}
	d.Facts = []fact{{"members", "nodes with " + d.Selector}}
	if room != nil {
		d.Facts = append(d.Facts, fact{"free", view.FreeText(room)})
		for _, l := range room.Lost {
			d.Facts = append(d.Facts, fact{"lost", view.LostText(l)})
		}
		for _, s := range room.LargestFits {
			d.LargestFits = append(d.LargestFits, view.LargestFitText(s))
		}
		if text := view.DaemonSetsText(room); text != "" {
			d.Facts = append(d.Facts, fact{"DaemonSets", text})
		}
	}
	if by := d.FilledBy; by != nil {
		d.Filled = []filledBy{{"namespace", view.WholePercents(by.Namespaces)}, {"workload", view.WholePercents(by.Workloads)}}
	}
}

// addNodes adds the node map, the table of nodes, and the panel of the selected node.
func (d *poolData) addNodes(s *snapshot, a address, room *view.Room) {
	byName := map[string]*corev1.Node{}
	for _, node := range s.nodes() {
		byName[node.Name] = node
	}
	shown, chosen := a.get("resource"), a.get("node")
	for _, name := range append([]string{""}, resourcesOf(d.Levels)...) {
		d.Shown = append(d.Shown, choice{cmp.Or(name, "fullest"), a.with("resource", name), name == shown})
	}
	by := cmp.Or(a.get("by"), corev1.LabelTopologyZone)
	for _, label := range []string{corev1.LabelTopologyZone, corev1.LabelInstanceTypeStable} {
		d.Groups = append(d.Groups, choice{label[strings.LastIndex(label, "/")+1:], a.with("by", label), label == by})
	}
	rows := []nodeRow{}
	for _, m := range d.Members {
		row := nodeRow{Member: m, Href: a.with("node", m.Name), Chosen: m.Name == chosen, Class: -1}
		if node := byName[m.Name]; node != nil {
			row.Zone, row.State = node.Labels[by], stateOf(node)
		}
		for _, name := range mainResources {
			row.Bars = append(row.Bars, levelOf(m.Levels, name))
		}
		if len(m.Levels) > 0 {
			percent := m.Fullest()
			if shown != "" {
				l, _ := view.LevelOf(m.Levels, corev1.ResourceName(shown))
				percent = l.Percent
			}
			row.Class = classOf(percent)
		}
		rows = append(rows, row)
	}
	var histogram []view.LevelClass
	d.Few = len(d.Members) <= mostFewNodes
	if d.NoPods == "" && !d.Few {
		histogram = view.Histogram(d.Members)
	}
	d.Map = mapOf(rows, histogram, shown, by, a)
	d.CutOff = a.get("class")
	if n, err := strconv.Atoi(d.CutOff); err == nil {
		rows = slices.DeleteFunc(rows, func(row nodeRow) bool { return min(int(row.Fullest())/10, 10) != n })
	}
	most := mostNodeRows
	if len(histogram) > 0 && d.CutOff == "" {
		most = firstNodeRows
	}
	d.More = max(0, len(rows)-most)
	d.Nodes = rows[:min(len(rows), most)]
	if node := byName[chosen]; node != nil {
		d.Node = nodePanelOf(node, s.pods(), room, a)
	}
}

func resourcesOf(levels []view.Level) []string {
	var names []string
	for _, l := range levels {
		names = append(names, l.Resource)
	}
	return names
}

// stateOf describes the state of a node that needs attention, such as "cordoned". It returns "" if
// the node needs no attention.
func stateOf(node *corev1.Node) string {
	switch {
	case !node.DeletionTimestamp.IsZero():
		return "being deleted"
	case isCordonedForMaintenance(node):
		return inMaintenance
	case !nodes.IsReady(node):
		return "not ready"
	case node.Spec.Unschedulable:
		return "cordoned"
	default:
		return ""
	}
}

// isCordonedForMaintenance reports whether a NodeMaintenance has cordoned the node.
func isCordonedForMaintenance(node *corev1.Node) bool {
	_, ok := node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation]
	return ok && node.Spec.Unschedulable
}

// nodePanel is the data of the node panel, which shows the details of a node.
type nodePanel struct {
	Name, State, Zone string
	Close             string
	Levels            []tide
	Pods              []nodePod
	More              int
	Loss              *lossRow
	Drain             *drainPanel
	Maintenance       *maintenancePanel
	node              *corev1.Node
}

// nodePod shows a pod in the node panel.
type nodePod struct{ Namespace, Name, Workload, Requests string }

// nodePanelOf returns the panel with a node's details. If the free capacity (room) is unknown, the
// panel lacks the requested percentages, the pods, and the effect of losing the node.
func nodePanelOf(node *corev1.Node, list []*corev1.Pod, room *view.Room, a address) *nodePanel {
	p := &nodePanel{node: node, Name: node.Name, State: stateOf(node), Zone: node.Labels[corev1.LabelTopologyZone], Close: a.with("node", "")}
	if room == nil {
		return p
	}
	requested, percent := room.Cluster.Members([]string{node.Name}).Utilization()
	for _, l := range view.LevelsOf(percent, requested, node.Status.Allocatable) {
		p.Levels = append(p.Levels, tideOf(l, nil, nil))
	}
	for _, pod := range list {
		if pod.Spec.NodeName != node.Name || pods.IsTerminal(pod) {
			continue
		}
		if len(p.Pods) == mostPodRows {
			p.More++
			continue
		}
		p.Pods = append(p.Pods, nodePod{pod.Namespace, pod.Name, pods.WorkloadName(pod), resources.Text(capacity.RequestsOf(pod))})
	}
	loss := lossRowOf(view.PoolLoss{Lost: "node " + node.Name, Loss: room.Cluster.Lose([]string{node.Name}, nil)})
	p.Loss = &loss
	return p
}

// addQuestions adds the effects of losing nodes or zones of the pool, and the pending pods that
// could fit into the pool.
func (d *poolData) addQuestions(room *view.Room, losses []view.PoolLoss) {
	for _, loss := range losses {
		if loss.Pool == d.Name {
			d.Losses = append(d.Losses, lossRowOf(loss))
		}
	}
	for _, row := range pendingRows(room) {
		row.In = slices.DeleteFunc(row.In, func(in pendingIn) bool { return in.Pool != d.Name || in.Answer == view.NeverFits })
		if len(row.In) > 0 {
			d.Pending = append(d.Pending, row)
		}
	}
}
