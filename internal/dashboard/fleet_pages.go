// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// otherCluster is a table row for a cluster that has no objects to show. Text is the reason.
type otherCluster struct {
	Context, Href, Text string
	Is                  view.Severity
}

// clusterError is an entry in a page's JSON data: a cluster that could not be read, with the
// reason.
type clusterError struct {
	Context string `json:"context"`
	Error   string `json:"error"`
}

// fleetPool is an entry in a page's JSON data: a pool, with the context of the pool's cluster.
type fleetPool struct {
	Context string `json:"context"`
	view.Pool
}

// fleetForecast is an entry in a page's JSON data: the forecast of a cluster, with the cluster's
// context.
type fleetForecast struct {
	Context string `json:"context"`
	forecast.Forecast
}

// fleetData is the JSON data of a page about all clusters: an item per object, and an error per
// cluster that could not be read.
type fleetData[T any] struct {
	Items  []T            `json:"items"`
	Errors []clusterError `json:"errors,omitempty"`
}

// problemsOf returns a sentence for each problem of the cluster, prefixed with the cluster's
// context. The parameters problems, noManager and oldForecast are messages from the cluster's own
// page. noManager and oldForecast are "" if there is no such problem. `local` is the local time at
// which the connection to the cluster was lost.
func (p *part) problemsOf(problems []string, noManager, oldForecast, local string) []string {
	var list []string
	if p.snapshot.lost != "" {
		list = append(list, fmt.Sprintf("%s has not answered since %s: %s. Its numbers are from then; trying again.", p.context(), local, p.snapshot.lost))
	}
	for _, problem := range problems {
		list = append(list, p.context()+": "+problem)
	}
	if noManager != "" {
		list = append(list, p.context()+": "+noManager+". What is shown of its pools and restarts may be out of date.")
	}
	if oldForecast != "" {
		list = append(list, p.context()+": "+oldForecast)
	}
	return list
}

func (p *part) lostAt() string { return p.member.frame.clock(p.snapshot.lostAt) }

// fleetPages merges the pages of single clusters into pages about all clusters.
type fleetPages struct {
	now      time.Time
	local    *time.Location
	address  address
	contexts []string
	parts    []part
	kinds    []string // names of the kinds that the page needs
}

// overview builds the overview page about all clusters.
func (a *fleetPages) overview() *page {
	d := &overview{Several: true, Filter: a.address.get("q")}
	data := fleetData[fleetPool]{Items: []fleetPool{}}
	noRestarts, read := []string{}, 0
	for i := range a.parts {
		p := &a.parts[i]
		if silent := p.silent(a.kinds); silent != "" {
			d.Others = append(d.Others, otherCluster{p.context(), p.member.frame.links.page("/"), silent, view.Bad})
			data.Errors = append(data.Errors, clusterError{p.context(), silent})
			d.Partly = true
			continue
		}
		read++
		of, _ := p.page.data.(*overview)
		d.add(p.member.frame.links, of)
		d.Problems = append(d.Problems, p.problemsOf(of.Problems, of.NoManager, of.OldForecast, p.lostAt())...)
		if of.NoHerd != "" {
			noRestarts = append(noRestarts, p.context())
		}
		if of.NoPools != "" {
			d.Others = append(d.Others, otherCluster{p.context(), p.member.frame.links.page("/"), of.NoPools, view.Bad})
			data.Errors = append(data.Errors, clusterError{p.context(), of.NoPools})
		}
		d.Partly = d.Partly || of.NoRoom+of.NoPods+of.NoMaintenances+of.NoHerd+of.Without != "" || of.NoForecast
		if len(of.Pools) == 0 && p.snapshot.problem(kindPools) == "" {
			d.Others = append(d.Others, otherCluster{Context: p.context(), Href: p.member.frame.links.page("/"), Text: "no node pools" + matching(d.Filter)})
		}
	}
	sort := cmp.Or(a.address.get("sort"), "fullest")
	sortPools(d.Pools, sort)
	d.Sorts = a.address.sorts(sort)
	d.finish()
	for _, row := range d.Pools {
		data.Items = append(data.Items, fleetPool{row.Context, row.Pool})
	}
	f, freezes := mergeForecasts(a.parts, a.kinds, a.now, 24*time.Hour)
	d.Strip, d.Herd, d.Missed = stripOf(&f, freezes, a.local), herdOf(&f, a.local), missedText(&f)
	d.NoForecast = !anyPlayed(a.parts)
	if silent := len(a.parts) - read; len(noRestarts)+silent == len(a.parts) {
		d.Strip, d.Herd, d.Missed, d.NoHerd = nil, nil, "", "no restarts can be read"
	}
	d.AsMaintenances = links{}.command([]string{"maintenance", "--contexts", strings.Join(a.contexts, ",")})
	d.addHeadline(links{})
	return &page{title: "Overview", template: "overview", data: d, json: data, command: []string{"pools", "-o", "wide", "--contexts", strings.Join(a.contexts, ",")}}
}

func matching(filter string) string {
	if filter == "" {
		return ""
	}
	return " that match the filter"
}

// add merges the overview of a single cluster into d, the overview of all clusters. `of` builds the
// links to that cluster's pages.
func (d *overview) add(of links, other *overview) {
	for _, row := range other.Pools {
		row.Context = of.context
		d.Pools = append(d.Pools, row)
	}
	for _, row := range other.Maintenances {
		row.Key = of.context + ": " + row.Key
		d.Maintenances = append(d.Maintenances, row)
	}
	for _, row := range other.Trouble {
		row.Key = of.context + ": " + row.Key
		d.Trouble = append(d.Trouble, row)
	}
	for _, row := range other.Slow {
		row.Key = of.context + ": " + row.Key
		d.Slow = append(d.Slow, row)
	}
	d.NotReady, d.Stopped, d.Failing, d.NotMaintained = d.NotReady+other.NotReady, d.Stopped+other.Stopped, d.Failing+other.Failing, d.NotMaintained+other.NotMaintained
	if d.Pending += other.Pending; other.Pending > 0 {
		d.PendingIn = append(d.PendingIn, choice{Text: fmt.Sprintf("%d in %s", other.Pending, of.context), Href: of.page("/capacity#pending")})
	}
}

// finish sorts the merged rows of all clusters. It keeps only the restarts with the most serious
// problems and the slowest start-ups, and draws the bars of all start-ups on the same scale.
func (d *overview) finish() {
	sortMaintenances(d.Maintenances)
	slices.SortStableFunc(d.Trouble, func(a, b restartRow) int { return cmp.Compare(trouble(&b), trouble(&a)) })
	d.Trouble = d.Trouble[:min(len(d.Trouble), mostTrouble)]
	slices.SortStableFunc(d.Slow, func(a, b startupRow) int { return cmp.Compare(b.Seconds, a.Seconds) })
	d.Slow = d.Slow[:min(len(d.Slow), mostSlow)]
	for i := range d.Slow {
		d.Slow[i].Segments = segmentsOf(&d.Slow[i].Startup, max(1, d.Slow[0].Seconds))
	}
}

// restarts builds the restarts page about all clusters.
func (a *fleetPages) restarts() *page {
	local, data := a.local, fleetData[fleetForecast]{Items: []fleetForecast{}}
	ahead := a.address.ahead()
	d := &restartsData{Zone: term.Zone(a.now, local), Filter: a.address.get("q"), Namespace: a.address.get("namespace"), Settings: "restarts take as long as the last one, or " + view.FormatDuration(assumedDuration)}
	d.addChoices(a.address, ahead)
	for i := range a.parts {
		p := &a.parts[i]
		if silent := p.silent(a.kinds); silent != "" {
			d.Problems = append(d.Problems, p.context()+" is not counted: "+silent)
			data.Errors = append(data.Errors, clusterError{p.context(), silent})
			d.Partly = true
			continue
		}
		of, _ := p.page.data.(*restartsData)
		d.Partly = d.Partly || of.NoRestarts+of.Without != "" || of.NoForecast
		d.Problems = append(d.Problems, p.problemsOf(of.Problems, of.NoManager, of.OldForecast, p.lostAt())...)
		for _, row := range of.Rows {
			row.Key = p.context() + ": " + row.Key
			d.Rows = append(d.Rows, row)
		}
		d.More += of.More
		for _, row := range of.Freezes {
			row.Name = p.context() + ": " + row.Name
			d.Freezes = append(d.Freezes, row)
		}
		if err := p.page.unknown; err != nil {
			data.Errors = append(data.Errors, clusterError{p.context(), err.Error()})
		} else if f, ok := p.page.json.(forecast.Forecast); ok {
			data.Items = append(data.Items, fleetForecast{p.context(), f})
		}
	}
	f, freezes := mergeForecasts(a.parts, a.kinds, a.now, ahead.Duration)
	if d.NoForecast = !anyPlayed(a.parts); !d.NoForecast {
		d.addForecast(&f, freezes, ahead, a.now, local)
	}
	slices.SortStableFunc(d.Rows, compareRestarts)
	d.More += max(0, len(d.Rows)-mostRestartRows)
	d.Rows = d.Rows[:min(len(d.Rows), mostRestartRows)]
	command := append([]string{"restarts", "next", "--for", ahead.text}, a.address.namespaceFlags()...)
	return &page{title: "Restarts", template: "restarts", data: d, json: data, command: append(command, "--contexts", strings.Join(a.contexts, ","))}
}

// anyPlayed reports whether at least one cluster's forecast is available.
func anyPlayed(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.request != nil && p.request.played.Known })
}

// mergeForecasts merges the forecasts and freezes of all clusters. It prefixes each namespace with
// the cluster's context. Each cluster is simulated separately, because it has a restart budget of
// its own.
func mergeForecasts(parts []part, kinds []string, now time.Time, ahead time.Duration) (forecast.Forecast, map[string][]period.Period) {
	var all forecast.Forecast
	freezes, minutes := map[string][]period.Period{}, map[time.Time]forecast.Minute{}
	for i := range parts {
		p := &parts[i]
		if p.silent(kinds) != "" {
			continue
		}
		f, periods := p.request.played, p.snapshot.freezes()
		if !f.Known {
			continue
		}
		if all.From.IsZero() || f.From.Before(all.From) {
			all.From, all.Until = f.From, f.Until
		}
		for _, m := range f.Minutes {
			known := minutes[m.Time]
			minutes[m.Time] = forecast.Minute{Time: m.Time, Started: known.Started + m.Started, Waiting: known.Waiting + m.Waiting}
		}
		in := func(ticks []forecast.Tick) []forecast.Tick {
			named := slices.Clone(ticks)
			for i := range named {
				named[i].Namespace = p.context() + ": " + named[i].Namespace
			}
			return named
		}
		all.Started = append(all.Started, in(f.Started)...)
		all.NotStarted = append(all.NotStarted, in(f.NotStarted)...)
		all.Waiting = append(all.Waiting, in(f.Waiting)...)
		addSummary(&all.Summary, &f.Summary)
		for namespace, list := range periods {
			for _, one := range list {
				one.Name = p.context() + ": " + one.Name
				freezes[p.context()+": "+namespace] = append(freezes[p.context()+": "+namespace], one)
			}
		}
	}
	if all.From.IsZero() {
		all.From, all.Until = now, now.Add(ahead)
	}
	for _, t := range slices.SortedFunc(maps.Keys(minutes), time.Time.Compare) {
		all.Minutes = append(all.Minutes, minutes[t])
	}
	slices.SortStableFunc(all.Started, func(a, b forecast.Tick) int { return a.Start.Compare(b.Start) })
	return all, freezes
}

// addSummary adds the totals of a cluster's forecast to the totals of all clusters.
func addSummary(all, of *forecast.Summary) {
	all.Started, all.Missed, all.Skipped, all.Failed = all.Started+of.Started, all.Missed+of.Missed, all.Skipped+of.Skipped, all.Failed+of.Failed
	all.InProgress, all.Waiting, all.Assumed, all.Unlisted = all.InProgress+of.InProgress, all.Waiting+of.Waiting, all.Assumed+of.Assumed, all.Unlisted+of.Unlisted
}
