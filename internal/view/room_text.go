// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// NotAvailable is shown instead of an unknown usage, to distinguish it from 0.
const NotAvailable = "not available"

// CopiesText formats the number of copies of a pod that fit into a pool. It is marked as an upper
// bound if some constraints were not evaluated.
func (f *PoolFit) CopiesText() string {
	if len(f.AtMost) > 0 && f.Copies > 0 {
		return "at most " + strconv.FormatInt(f.Copies, 10)
	}
	return strconv.FormatInt(f.Copies, 10)
}

// LostText describes the lost nodes or zone, and marks the pool's worst node.
func (l *PoolLoss) LostText() string {
	if l.Worst {
		return l.Lost + " (the worst)"
	}
	return l.Lost
}

// CountsText lists properties of nodes, each with the number of nodes that have it, such as
// "cordoned (2), taint x:NoSchedule (1)".
func CountsText(counts []capacity.Count) string {
	if len(counts) == 0 {
		return "-"
	}
	texts := make([]string, len(counts))
	for i, c := range counts {
		texts[i] = fmt.Sprintf("%s (%d)", c.What, c.Nodes)
	}
	return strings.Join(texts, ", ")
}

// mostWorkloads is the maximum number of workloads named in a table cell.
const mostWorkloads = 3

// WithoutPlaceText names the first workloads in a list of workloads with pods that fit on no node,
// and counts the other workloads.
func WithoutPlaceText(list []capacity.WithoutPlace) string {
	if len(list) == 0 {
		return "-"
	}
	var texts []string
	for _, w := range list[:min(len(list), mostWorkloads)] {
		texts = append(texts, fmt.Sprintf("%s/%s (%d)", w.Namespace, w.Workload, w.Pods))
	}
	if more := len(list) - mostWorkloads; more > 0 {
		texts = append(texts, "and "+plural(more, "more workload"))
	}
	return strings.Join(texts, ", ")
}

// causeTexts maps each reason why new pods cannot use a node's resources to a phrase.
var causeTexts = map[tidekeeperv1.LostCause]string{
	tidekeeperv1.LostBeingDeleted: "being deleted", tidekeeperv1.LostNotReady: "not ready", tidekeeperv1.LostCordoned: "cordoned",
	tidekeeperv1.LostOtherTaint: "another taint", tidekeeperv1.LostPodLimitReached: "at its limit of pods",
}

// LostText describes resources that new pods cannot use, with the cause and the number of nodes.
func LostText(l tidekeeperv1.Lost) string {
	return fmt.Sprintf("%s: %s, %s", causeTexts[l.Cause], plural(int(l.Nodes), "node"), resources.Text(l.Resources))
}

// FreeText describes the free resources for new pods, and the number of usable nodes.
func FreeText(l *capacity.Room) string {
	return fmt.Sprintf("%s, on %d of %s", resources.Text(l.Free), l.UsableNodes, plural(l.Nodes, "node"))
}

// DaemonSetsText describes the requests of DaemonSet pods on a node, and the remaining capacity of
// an empty node. It returns "" if there are no DaemonSets.
func DaemonSetsText(l *capacity.Room) string {
	if pods := l.DaemonSets[corev1.ResourcePods]; pods.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s; an empty node has %s left", resources.Text(l.DaemonSets), resources.Text(l.EmptyNode.Resources))
}

// LargestFitText describes the requests of the largest pod that fits now, and names the node on
// which it fits.
func LargestFitText(s tidekeeperv1.LargestFit) string {
	return resources.Text(s.Resources) + ", on " + s.Node
}

// DevicesText describes the devices of a pool's nodes, such as "gpu.example.com: 3 of 8 free". It
// returns "" if there are none.
func (d *PoolDetail) DevicesText() string {
	if d.Devices == nil || len(d.Devices.Classes) == 0 {
		if d.NoDevices != "" {
			return NotAvailable + ": " + d.NoDevices
		}
		return ""
	}
	free := "%s: %d of %d free"
	if len(d.Devices.AtMost) > 0 {
		free = "%s: at most %d of %d free"
	}
	texts := make([]string, len(d.Devices.Classes))
	for i, c := range d.Devices.Classes {
		texts[i] = fmt.Sprintf(free, c.Class, c.Free, c.Devices)
		if c.NotEvaluated > 0 {
			texts[i] += fmt.Sprintf(", %d partitionable or consumable ones are not evaluated", c.NotEvaluated)
		}
	}
	text := strings.Join(texts, "; ")
	if len(d.Devices.AtMost) > 0 {
		text += " (because of: " + strings.Join(d.Devices.AtMost, ", ") + ")"
	}
	return text
}

// NamedPercent is the percentage of a resource that a namespace or workload requests, rounded to a
// whole number.
type NamedPercent struct {
	Name    string
	Percent int
}

// WholePercents rounds the percentages of shares to whole numbers that add up to 100, in the same
// order. It rounds up the percentages with the largest fractions. Among equal fractions, earlier
// shares take precedence.
func WholePercents(shares []capacity.Share) []NamedPercent {
	list := make([]NamedPercent, len(shares))
	byLoss := make([]int, len(shares))
	sum, shown := 0.0, 0
	for i, s := range shares {
		list[i] = NamedPercent{Name: cmp.Or(s.Name, "the rest"), Percent: int(s.Percent)}
		sum += s.Percent
		shown += list[i].Percent
		byLoss[i] = i
	}
	loss := func(i int) float64 { return shares[i].Percent - math.Floor(shares[i].Percent) }
	slices.SortStableFunc(byLoss, func(a, b int) int { return cmp.Compare(loss(b), loss(a)) })
	for _, i := range byLoss[:min(len(byLoss), max(0, int(math.Round(sum))-shown))] {
		list[i].Percent++
	}
	return list
}

// UsedText formats the measured usage. If only some nodes were measured, the usage is a lower
// bound. The result is then formatted with bound, which has verbs for the usage, the number of
// measured nodes, and the number of all nodes.
func UsedText(u *capacity.Used, bound string) string {
	shown := resources.Text(u.Resources)
	if u.AtLeast() {
		shown = fmt.Sprintf("at least "+bound, shown, u.MeasuredNodes, u.Nodes)
	}
	return shown
}

// UsedLine describes the measured usage of a pool's nodes. It returns "" if the pool has no nodes.
func (d *PoolDetail) UsedLine() string {
	switch {
	case d.Used != nil:
		return UsedText(d.Used, "%s (of %d of %d nodes)")
	case len(d.Members) == 0 || d.NoMetrics == "":
		return ""
	default:
		return NotAvailable + ": " + d.NoMetrics
	}
}

// Amount formats the level as amounts, such as "12 of 16": the requested and the allocatable
// amount.
func (l Level) Amount() string {
	if l.Allocatable == "" {
		return "-"
	}
	return human(l.Resource, l.Requested) + " of " + human(l.Resource, l.Allocatable)
}

// human formats a quantity in a short form. It returns an invalid quantity unchanged.
func human(name, quantity string) string {
	amount, err := resource.ParseQuantity(quantity)
	if err != nil {
		return quantity
	}
	return resources.Human(corev1.ResourceName(name), amount)
}

// LevelClass counts the nodes whose fullest resource has a level within a range of ten percentage
// points.
type LevelClass struct {
	Text  string // such as "80–89%"
	Class int    // percentage divided by ten; 10 means 100% or more
	Nodes int
}

// Histogram counts the nodes by the level of their fullest resource, the fullest range first. It
// includes ranges without nodes.
func Histogram(members []Member) []LevelClass {
	const full = 10
	classes := make([]LevelClass, full+1)
	for i := range classes {
		class := full - i
		classes[i] = LevelClass{Class: class, Text: fmt.Sprintf("%d–%d%%", 10*class, 10*class+9)}
	}
	classes[0].Text = "100% or more"
	for i := range members {
		classes[full-min(int(members[i].Fullest())/10, full)].Nodes++
	}
	return classes
}
