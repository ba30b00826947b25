// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

var (
	capacityKinds = []string{kindPools, kindNodes, kindPods}
	poolKinds     = []string{kindPools, kindNodes, kindPods, kindMaintenances}
	podsKinds     = []string{kindPods}
	restartsKinds = func() []string {
		kinds := []string{kindRestarts, kindFreezes, kindNamespaces, kindPods}
		for _, kind := range workload.Kinds {
			kinds = append(kinds, kind.Resource)
		}
		return kinds
	}()
	overviewKinds = append([]string{kindPools, kindNodes, kindMaintenances}, restartsKinds...)
)

// mainResources lists the resources that are shown for every pool.
var mainResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// mostTrouble and mostSlow are the maximum numbers of rows in the overview's tables of failing
// restarts and slow pods.
const (
	mostTrouble = 8
	mostSlow    = 6
	// overviewAhead is the period into the future of the overview's forecast.
	overviewAhead = 24 * time.Hour
)

// overview is the template data of the overview page.
type overview struct {
	Problems  []string
	NoManager string
	Filter    string
	Sorts     []choice
	Pools     []poolRow
	// Others lists the clusters without pools. It is only used on a page about all clusters.
	Others  []otherCluster
	Several bool // set on a page about all clusters
	// NoPools, NoRoom and NoPods explain why the pools, the free capacity and the pod start-ups are
	// unknown. Each is "" if the data is known.
	NoPools, NoRoom, NoPods string
	Maintenances            []maintenanceRow
	// NoMaintenances explains why the NodeMaintenances are unknown, or is "". NotMaintained is the
	// number of nodes whose maintenance has failed, over all NodeMaintenances in Maintenances.
	NoMaintenances string
	NotMaintained  int
	// AsMaintenances is the kubectl tide command that lists the NodeMaintenances.
	AsMaintenances string
	// Partly is set if the page lacks the data of some clusters.
	Partly  bool
	Pending int
	// PendingIn contains a link to the pending pods of each cluster that has pending pods.
	PendingIn []choice
	Strip     *strip
	Herd      *herd
	NoHerd    string
	// Missed states how many ticks (scheduled times) will be missed, and names the
	// ScheduledRestarts of these ticks.
	Missed string
	// Headline lists the problems that need attention, each with a link. Calm is set if the page
	// shows all data of all pools, and there are no problems.
	Headline []headlineItem
	Calm     bool
	// Stopped is the number of ScheduledRestarts whose status has the severity Bad. Failing is the
	// number of other ScheduledRestarts with consecutive failures or a failed last restart.
	Stopped, Failing int
	// OldForecast explains why the forecast is outdated. It is "" for a current forecast.
	OldForecast string
	NoForecast  bool
	// Without names the kinds that could not be read, and that the forecast therefore does not take
	// into account.
	Without string
	Trouble []restartRow
	Slow    []startupRow
	// NotReady is the number of pods created in the last hour that are not ready yet.
	NotReady int
}

// choice is a link in a list of links, such as the link that selects a sort order. Chosen is set if
// the page already shows the selection of the link.
type choice struct {
	Text, Href string
	Chosen     bool
}

// poolRow is a table row that shows a pool.
type poolRow struct {
	view.Pool
	// Context is the cluster's context. It is only set on a page about all clusters.
	Context        string
	Href, LossHref string
	Levels         []levelBar
	Usable         string
	LargestFit     string
	Loss           string
	LossIs         view.Severity
	Pending        string
}

// poolTable builds the table rows that show pools.
type poolTable struct {
	now     time.Time
	address address
	links   links
	room    *view.Room // nil if unknown
	losses  []view.PoolLoss
}

// overviewPage builds the overview, the page about all pools and current problems.
func overviewPage(r *request) (*page, error) {
	a, s, local := r.address, r.snapshot, r.local()
	d := &overview{Problems: s.problemsOf(overviewKinds...), NoManager: r.noManager(), Filter: a.get("q"), NoPools: s.problem(kindPools), NoRoom: s.problem(capacityKinds...), NoPods: s.problem(kindPods)}
	d.Maintenances, d.NoMaintenances = r.maintenanceRows(), s.problem(kindMaintenances)
	d.AsMaintenances = r.frame.links.command([]string{"maintenance"})
	for _, row := range d.Maintenances {
		d.NotMaintained += int(row.Failed)
	}
	room, losses := r.model.parts()
	table := poolTable{now: r.now(), address: a, links: r.frame.links, room: room, losses: losses}
	d.Pools = table.rows(s.pools())
	sort := cmp.Or(a.get("sort"), "fullest")
	sortPools(d.Pools, sort)
	d.Sorts = a.sorts(sort)
	if table.room != nil {
		for _, g := range table.room.Pending() {
			d.Pending += len(g.Pods)
		}
	}
	if d.NoHerd = s.problem(kindRestarts); d.NoHerd == "" {
		d.OldForecast = r.played.note(r.now(), local)
		d.NoForecast, d.Without = !r.played.Known, s.forecastWithout()
		if f := &r.played.Forecast; !d.NoForecast {
			d.Strip, d.Herd, d.Missed = stripOf(f, s.freezes(), local), herdOf(f, local), missedText(f)
		}
		table := r.restartTable()
		for _, row := range table.rows(s.restarts()) {
			if row.Status.Severity == view.Bad || row.Outcome.Severity == view.Bad || row.Failures > 0 {
				d.Trouble = append(d.Trouble, row)
				if row.Status.Severity == view.Bad {
					d.Stopped++
				} else {
					d.Failing++
				}
			}
		}
		d.Trouble = d.Trouble[:min(len(d.Trouble), mostTrouble)]
		for i := range d.Trouble {
			table.complete(&d.Trouble[i])
		}
	}
	if d.Pending > 0 {
		d.PendingIn = []choice{{Text: "which pool could take them", Href: r.frame.links.page("/capacity#pending")}}
	}
	d.Slow, d.NotReady = r.startups().slowest(time.Hour, mostSlow)
	shown := []view.Pool{}
	for _, row := range d.Pools {
		shown = append(shown, row.Pool)
	}
	d.addHeadline(r.frame.links)
	return &page{title: "Overview", template: "overview", data: d, json: shown, command: d.command(), unknown: s.unknown(kindPools)}, nil
}

// command returns the kubectl tide command that lists the displayed pools.
func (d *overview) command() []string {
	command := []string{"pools"}
	if d.Filter != "" {
		for _, row := range d.Pools {
			command = append(command, row.Name)
		}
		if len(d.Pools) == 0 {
			command = append(command, d.Filter) // No pool matches. Without an argument, the command would list all pools.
		}
	}
	return append(command, "-o", "wide")
}

// rows returns a row for each pool that matches the page's filter.
func (t *poolTable) rows(pools []*tidekeeperv1.NodePool) []poolRow {
	rows := []poolRow{}
	for _, pool := range pools {
		row := poolRow{Pool: view.PoolOf(pool, t.now), Href: t.links.pool(pool.Name), LossHref: t.links.page("/capacity#losses"), Usable: "-", LargestFit: "-", Loss: "-"}
		if !t.address.matches(row.Name) {
			continue
		}
		for _, name := range mainResources {
			row.Levels = append(row.Levels, levelOf(row.Pool.Levels, name))
		}
		if len(row.LargestFits) > 0 {
			row.LargestFit = view.LargestFitText(row.LargestFits[0])
		}
		if t.room != nil {
			t.addRoom(&row)
		}
		rows = append(rows, row)
	}
	return rows
}

// addRoom adds the number of usable nodes, the largest pod that fits, and the effect of losing the
// pool's worst node to a pool's row.
func (t *poolTable) addRoom(row *poolRow) {
	pools := t.room.Pools
	i := slices.IndexFunc(pools, func(p view.PoolMembers) bool { return p.Name == row.Name })
	if i < 0 {
		return
	}
	room := t.room.Cluster.Members(pools[i].Members).Room(plan.Taints(pools[i].NodePool))
	row.Usable = ofAll(room.UsableNodes, room.Nodes)
	if len(room.LargestFits) > 0 {
		row.LargestFit = view.LargestFitText(room.LargestFits[0])
	}
	for _, loss := range t.losses {
		if loss.Pool != row.Name || !loss.Worst {
			continue
		}
		row.Loss, row.LossIs = "all "+plural(loss.Pods, "pod")+" fit", view.Good
		if n := loss.Homeless(); n > 0 {
			row.Loss, row.LossIs = plural(n, "pod")+" without place", view.Bad
		}
	}
}

// sortPools sorts rows by the chosen column, then by name.
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
