// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// badness ranks severities for sorting. A larger number is worse.
var badness = map[view.Severity]int{view.Good: 0, view.Neutral: 0, view.Warning: 1, view.Bad: 2}

func typesUID(uid string) types.UID { return types.UID(uid) }

// plural returns a number with a noun in the singular or plural.
func plural(n int, noun string) string {
	if n == 1 || noun == "more" {
		return strconv.Itoa(n) + " " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// ofAll formats a number out of a total, such as 3/5.
func ofAll(some, all int) string { return fmt.Sprintf("%d/%d", some, all) }

// levelBar shows the percentage of a resource that pods request, as a number and as a bar, in the
// tables of pools and nodes.
type levelBar struct {
	Resource string
	Known    bool
	Percent  int32
	Width    int32 // width of the bar in percent
	Amount   string
	Is       view.Severity
}

// levelOf returns the bar that shows a resource's requested percentage.
func levelOf(levels []view.Level, name corev1.ResourceName) levelBar {
	l, known := view.LevelOf(levels, name)
	return levelBar{Resource: string(name), Known: known, Percent: l.Percent, Width: min(100, l.Percent), Amount: l.Amount(), Is: l.Severity()}
}

// tide is the bar of a resource on a pool's page. It shows the parts of the allocatable amount that
// pods request, that are in use, and that new pods cannot use. Positions and widths are in
// thousandths of the bar's width.
type tide struct {
	levelBar
	// Lost is the part of the allocatable amount that no new pod can use, drawn at the right end of
	// the bar. Used is the measured usage, drawn as a vertical line.
	Requested, Lost, Used int64
	LostX, UsedX          int64
	LostText, UsedText    string
	Free                  string
}

// tideOf returns the bar of a resource. room is the capacity of the pool for new pods, or nil if it
// is unknown. used is the measured usage, or nil if it is unknown.
func tideOf(l view.Level, room *capacity.Room, used *capacity.Used) tide {
	name := corev1.ResourceName(l.Resource)
	t := tide{levelBar: levelOf([]view.Level{l}, name), LostText: "-", UsedText: "-", Free: "-"}
	all, err := resource.ParseQuantity(l.Allocatable)
	if err != nil {
		return t
	}
	part := func(of resource.Quantity) int64 {
		if all.IsZero() {
			return 0
		}
		return min(1000, int64(1000*of.AsApproximateFloat64()/all.AsApproximateFloat64()))
	}
	if requested, err := resource.ParseQuantity(l.Requested); err == nil {
		t.Requested = part(requested)
	}
	if room != nil {
		lost := all.DeepCopy()
		lost.Sub(room.Usable[name])
		t.Lost, t.LostText = part(lost), resources.Human(name, lost)
		t.Free = resources.Human(name, room.Free[name])
	}
	if used != nil {
		if amount, known := used.Resources[name]; known {
			t.Used, t.UsedText = part(amount), resources.Human(name, amount)
			if used.AtLeast() {
				t.UsedText = "≥ " + t.UsedText
			}
		}
	}
	t.LostX, t.UsedX = 1000-t.Lost, min(t.Used, 996)
	return t
}

// classTexts lists the labels of the classes of nodes on the node map. A class is a range of
// percentages. A node belongs to the range that contains the percentage of a resource that the
// node's pods request.
var classTexts = []string{"0–19%", "20–39%", "40–59%", "60–79%", "80–94%", "95% or more"}

// classOf returns the index in classTexts of the class of a percentage.
func classOf(percent int32) int {
	switch {
	case percent >= 95:
		return 5
	case percent >= 80:
		return 4
	default:
		return int(percent) / 20
	}
}

// nodeMap shows a square for each node, and a histogram of the nodes by the percentage that is
// requested of their fullest resource.
type nodeMap struct {
	Groups    []nodeGroup
	Legend    []stageKey
	Histogram []histogramBar
	Most      int
	Of        string
}

// nodeGroup lists the nodes with the same label value, such as the nodes of a zone.
type nodeGroup struct {
	Name    string
	Squares []square
}

// square is the symbol of a node on the node map.
type square struct {
	Name, Href, Title string
	Class             int
	State             string // "cordoned", "not ready", …
	Mark              string // index of the class, or the glyph for the node's state
	Chosen            bool
}

// histogramBar shows the number of nodes whose fullest resource has a requested percentage within a
// certain range.
type histogramBar struct {
	view.LevelClass
	Width  int // in percent
	Href   string
	Chosen bool
}

// marks maps the states of nodes to the glyphs that the node map shows.
var marks = map[string]string{"cordoned": "/", "not ready": "×", "being deleted": "−", inMaintenance: "m"}

// mapOf returns the node map, with the nodes grouped by their values of the given label. shown is
// the displayed resource, or "" for the fullest resource of each node.
func mapOf(rows []nodeRow, histogram []view.LevelClass, shown, label string, a address) *nodeMap {
	m := &nodeMap{Of: shown}
	if shown == "" {
		m.Of = "the fullest resource"
	}
	groups := map[string]*nodeGroup{}
	var names []string
	for _, row := range rows {
		g := groups[row.Zone]
		if g == nil {
			g = &nodeGroup{Name: row.Zone}
			if row.Zone == "" {
				g.Name = "nodes without the label " + label
			}
			groups[row.Zone] = g
			names = append(names, row.Zone)
		}
		sq := square{Name: row.Name, Href: row.Href, Class: row.Class, State: row.State, Chosen: row.Chosen, Mark: "?"}
		text := "level not known"
		if row.Class >= 0 {
			sq.Mark, text = strconv.Itoa(row.Class), "class "+strconv.Itoa(row.Class)+", "+classTexts[row.Class]+" of "+m.Of
		}
		sq.Title = row.Name + ": " + text
		if row.State != "" {
			sq.Mark, sq.Title = marks[row.State], sq.Title+", "+row.State
		}
		g.Squares = append(g.Squares, sq)
	}
	slices.Sort(names)
	for _, name := range names {
		m.Groups = append(m.Groups, *groups[name])
	}
	for i, text := range classTexts {
		m.Legend = append(m.Legend, stageKey{i, text})
	}
	for _, c := range histogram {
		m.Most = max(m.Most, c.Nodes)
	}
	for _, c := range histogram {
		bar := histogramBar{LevelClass: c, Href: a.with("class", strconv.Itoa(c.Class)), Chosen: a.get("class") == strconv.Itoa(c.Class)}
		if bar.Chosen {
			bar.Href = a.with("class", "")
		}
		if m.Most > 0 {
			bar.Width = 100 * c.Nodes / m.Most
		}
		m.Histogram = append(m.Histogram, bar)
	}
	return m
}

// segment is a start-up stage on a time axis. Positions and widths are in thousandths of the axis.
type segment struct {
	Number        int
	X, Width      int64
	Fuzzy         int64 // uncertainty of the stage's end, because API timestamps have whole seconds
	Title         string
	Done, Slowest bool
}

// segmentsOf returns a segment for each stage of a start-up. The scale is such that a start-up of
// `longest` seconds fills the full width.
func segmentsOf(s *view.Startup, longest int64) []segment {
	names := podtimeline.StageNames()
	var list []segment
	for _, stage := range s.Stages {
		x := int64(1000 * stage.Start.Sub(s.Created).Seconds() / float64(longest))
		g := segment{
			Number: slices.Index(names, stage.Name), X: x, Width: max(2, 1000*stage.Seconds/longest), Fuzzy: 1000 / longest, Done: stage.Done,
			Title: view.StageText(stage.Name) + ": " + view.FormatLength(view.Seconds(stage.Seconds)), Slowest: s.Slowest != nil && s.Slowest.Stage == stage.Name,
		}
		g.X = min(g.X, 998)
		g.Width = min(g.Width, 1000-g.X)
		list = append(list, g)
	}
	return list
}
