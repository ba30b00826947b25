// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

var (
	capacityKinds = []string{kindPools, kindNodes, kindPods}
	podsKinds     = []string{kindPods}
	restartsKinds = func() []string {
		kinds := []string{kindRestarts, kindFreezes, kindNamespaces, kindPods}
		for _, kind := range workload.Kinds {
			kinds = append(kinds, kind.Resource)
		}
		return kinds
	}()
	overviewKinds = append([]string{kindPools, kindNodes}, restartsKinds...)
)

// mainResources are those that every pool is shown with.
var mainResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// mostTrouble and mostSlow are how many rows the overview has of each.
const (
	mostTrouble = 8
	mostSlow    = 6
	// overviewAhead is how far the overview looks ahead.
	overviewAhead = 24 * time.Hour
)

// overview is the data of the first page.
type overview struct {
	Problems  []string
	NoManager string
	Filter    string
	Sorts     []choice
	Pools     []poolRow
	// Others are the clusters of which there is no pool, on a page of several.
	Others  []otherCluster
	Several bool   // clusters
	NoPods  string // why there is nothing about pods
	Pending int
	// PendingIn are the links to the pending pods.
	PendingIn []choice
	Strip     *strip
	Herd      *herd
	NoHerd    string
	// OldForecast says that what is coming is old, and why.
	OldForecast string
	NoForecast  bool
	Trouble     []restartRow
	Slow        []startupRow
}

// choice is one of several values of a parameter.
type choice struct {
	Text, Href string
	Chosen     bool
}

// poolRow is a pool in the table.
type poolRow struct {
	view.Pool
	// Context is that of its cluster, on a page of several.
	Context        string
	Href, LossHref string
	Levels         []levelBar
	Usable         string
	LargestFit     string
	Loss           string
	LossIs         view.Severity
	Pending        string
}

// overviewPage is the page of all pools, and of what goes wrong.
func overviewPage(r *request) (*page, error) {
	d := &overview{Problems: r.problems(overviewKinds...), NoManager: r.noManager(), Filter: r.query.Get("q"), NoPods: r.snapshot.problem(kindNodes, kindPods)}
	d.Pools = r.poolRows()
	sort := cmp.Or(r.query.Get("sort"), "fullest")
	sortPools(d.Pools, sort)
	d.Sorts = r.sortChoices(sort)
	if room := r.roomOf(); room != nil {
		for _, g := range room.Pending() {
			d.Pending += len(g.Pods)
		}
	}
	if d.NoHerd = r.snapshot.problem(kindRestarts); d.NoHerd == "" {
		d.OldForecast = r.played.note(r.now(), r.site.local)
		d.NoForecast = !r.played.Known
		if f := &r.played.Forecast; !d.NoForecast {
			d.Strip, d.Herd = stripOf(f, r.freezes(), r.site.local), herdOf(f, r.site.local)
		}
		for _, row := range r.restartRows() {
			if row.Status.Severity == view.Bad || row.Outcome.Severity == view.Bad || row.Failures > 0 {
				d.Trouble = append(d.Trouble, row)
			}
		}
		d.Trouble = d.Trouble[:min(len(d.Trouble), mostTrouble)]
	}
	if d.Pending > 0 {
		d.PendingIn = []choice{{Text: "which pool could take them", Href: r.site.href("/capacity#pending")}}
	}
	d.Slow = r.slowest(time.Hour, mostSlow)
	shown := []view.Pool{}
	for _, row := range d.Pools {
		shown = append(shown, row.Pool)
	}
	return &page{title: "Overview", template: "overview", data: d, json: shown, command: []string{"pools", "-o", "wide"}}, nil
}

func (r *request) sortChoices(chosen string) []choice {
	var list []choice
	for _, by := range []string{"fullest", "name", "status", "cpu", "memory", "pods"} {
		list = append(list, choice{by, r.with("sort", by), by == chosen})
	}
	return list
}

// poolRows returns the pools that match the filter.
func (r *request) poolRows() []poolRow {
	rows := []poolRow{}
	room := r.roomOf()
	for _, pool := range r.pools() {
		row := poolRow{Pool: view.PoolOf(pool, r.now()), Href: r.site.poolHref(pool.Name), LossHref: r.site.href("/capacity#losses"), Usable: "-", LargestFit: "-", Loss: "-"}
		if q := r.query.Get("q"); q != "" && !strings.Contains(row.Name+" "+row.Status.Reason, q) {
			continue
		}
		for _, name := range mainResources {
			row.Levels = append(row.Levels, levelOf(row.Pool.Levels, name))
		}
		if len(row.LargestFits) > 0 {
			row.LargestFit = view.LargestFitText(row.LargestFits[0])
		}
		if room != nil {
			r.addRoom(&row, room, pool.Name)
		}
		rows = append(rows, row)
	}
	return rows
}

// addRoom adds what the room of a cluster says about a pool.
func (r *request) addRoom(row *poolRow, room *view.Room, name string) {
	i := slices.IndexFunc(room.Pools, func(p view.PoolMembers) bool { return p.Name == name })
	if i < 0 {
		return
	}
	level := room.Cluster.Members(room.Pools[i].Members).Level(plan.Taints(room.Pools[i].NodePool))
	row.Usable = ofAll(level.UsableNodes, level.Nodes)
	if len(level.LargestFits) > 0 {
		row.LargestFit = view.LargestFitText(level.LargestFits[0])
	}
	for _, loss := range r.losses() {
		if loss.Pool != name || !loss.Worst {
			continue
		}
		row.Loss, row.LossIs = "all "+plural(loss.Pods, "pod")+" fit", view.Good
		if n := loss.Homeless(); n > 0 {
			row.Loss, row.LossIs = plural(n, "pod")+" without place", view.Bad
		}
	}
}

// sortPools sorts by what is chosen, and by name where that is equal.
func sortPools(rows []poolRow, by string) {
	percent := func(p *poolRow, name corev1.ResourceName) int32 {
		l, _ := view.LevelOf(p.Pool.Levels, name)
		return l.Percent
	}
	slices.SortStableFunc(rows, func(a, b poolRow) int {
		switch by {
		case "name":
			return cmp.Compare(a.Name, b.Name)
		case "status":
			return cmp.Or(cmp.Compare(badness[b.Status.Severity], badness[a.Status.Severity]), cmp.Compare(a.Name, b.Name))
		case "fullest":
			return cmp.Or(cmp.Compare(fullest(&b), fullest(&a)), cmp.Compare(a.Name, b.Name))
		default:
			name := corev1.ResourceName(by)
			return cmp.Or(cmp.Compare(percent(&b, name), percent(&a, name)), cmp.Compare(a.Name, b.Name))
		}
	})
}

func fullest(p *poolRow) int32 {
	most := int32(0)
	for _, l := range p.Pool.Levels {
		most = max(most, l.Percent)
	}
	return most
}
