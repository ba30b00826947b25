// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Maximum numbers of rows in the tables of the restarts page.
const (
	mostRestartRows = 30
	mostMinutes     = 40
	mostUnserved    = 8
)

// restartsData is the template data of the restarts page.
type restartsData struct {
	Problems  []string
	NoManager string
	// NoRestarts and NoFreezes explain why restarts and freezes are unknown. Without names the
	// kinds that could not be read and that the forecast therefore does not take into account.
	// Partly is set if the page lacks the data of some clusters.
	NoRestarts, NoFreezes, Without string
	Partly                         bool
	Zone                           string
	Ahead                          []choice
	Outcomes                       []choice
	Triggers                       []choice
	Filter                         string
	Namespace                      string
	Strip                          *strip
	Herd                           *herd
	// Freezes lists the Freezes that have not ended. FreezeActions contains the button that creates
	// a Freeze.
	Freezes       []freezeRow
	FreezeActions []action
	Summary       forecast.Summary
	// Missed states how many ticks (scheduled times) will be missed, and names the
	// ScheduledRestarts of these ticks. AheadText is the period that the forecast covers, in words.
	Missed, AheadText string
	Settings          string
	// OldForecast explains why the forecast is outdated. NoForecast is set if there is no forecast.
	OldForecast string
	NoForecast  bool
	Minutes     []minuteRow
	MoreMin     int
	Unserved    []unservedRow
	// MoreUnserved is the number of groups of missed, skipped or failed ticks that the field
	// Unserved omits.
	MoreUnserved int
	Rows         []restartRow
	// AsList is the kubectl tide command that lists the same restarts. It is "" if the user
	// selected an outcome, because no command filters by outcome.
	AsList  string
	More    int
	Axis    *laneAxis
	Restart *restartPanel
}

// minuteRow is a table row that shows a minute of the forecast in which restarts start.
type minuteRow struct {
	Time           shownTime
	Count, Waiting int
	Names          string
	Greatest       bool
}

// unservedRow is a table row that shows a group of ticks (scheduled times of restarts). All ticks
// of the group are missed or skipped, or lead to a failed restart, for the same reason.
type unservedRow struct {
	Restarts    []choice // names with links
	More        int      // number of restarts that Restarts omits
	Count       string
	First, Last shownTime // Last is empty if there is only one tick.
	Outcome     view.Outcome
	Message     string
}

// restartsPage builds the restarts page, which shows past and future restarts.
func restartsPage(r *request) (*page, error) {
	now, local, s := r.now(), r.local(), r.snapshot
	d := &restartsData{
		Problems: s.problemsOf(s.forecastKinds()...), NoManager: r.noManager(), Zone: term.Zone(now, local), Filter: r.address.get("q"), Namespace: r.address.get("namespace"),
		Settings: settingsText(r.settings()), NoRestarts: s.problem(kindRestarts), NoFreezes: s.problem(kindFreezes), Without: s.forecastWithout(),
	}
	ahead := r.address.ahead()
	only, trigger := d.addChoices(r.address, ahead)
	buttons := r.buttons()
	d.Freezes, d.FreezeActions = freezeRows(s, local, buttons), buttons.freeze()
	f := r.played.Forecast
	p := &page{title: "Restarts", template: "restarts", data: d, json: f, command: append([]string{"restarts", "forecast", "--for", ahead.text}, r.address.namespaceFlags()...), unknown: s.unknown(kindRestarts)}
	if d.NoForecast = !r.played.Known; d.NoRestarts != "" {
		return p, nil
	}
	d.OldForecast = r.played.note(now, local)
	if d.NoForecast {
		p.unknown = &unknownError{why: d.OldForecast}
	} else {
		d.addForecast(&f, s.freezes(), ahead, now, local)
		for i := range d.Unserved {
			for j, of := range d.Unserved[i].Restarts {
				d.Unserved[i].Restarts[j].Href = "/restarts" + r.address.with("restart", of.Text)
			}
		}
	}
	table := r.restartTable()
	rows := slices.DeleteFunc(table.rows(s.restarts()), func(row restartRow) bool {
		return only != "" && !strings.HasPrefix(row.Outcome.Text, only)
	})
	d.More = max(0, len(rows)-mostRestartRows)
	d.Rows = slices.Clone(rows[:min(len(rows), mostRestartRows)])
	for i := range d.Rows {
		table.complete(&d.Rows[i])
	}
	if only == "" {
		d.AsList = r.frame.links.command(r.address.listOf("restarts"))
	}
	gates := r.gates()
	d.addLanes(&f, gates, trigger, now, local)
	if key := r.address.get("restart"); key != "" {
		i := slices.IndexFunc(rows, func(row restartRow) bool { return row.Key == key })
		if i >= 0 {
			table.complete(&rows[i])
			d.Restart = table.panel(&rows[i], gates, buttons)
		}
	}
	return p, nil
}

// addLanes adds the lane (the chart of past and future restarts) and the closed gates to each row.
func (d *restartsData) addLanes(f *forecast.Forecast, gates *gateReader, trigger string, now time.Time, local *time.Location) {
	d.Axis = &laneAxis{From: now.Add(-laneSpan), Now: now, Until: now.Add(laneSpan), local: local}
	coming := map[string][]forecast.Tick{}
	for _, list := range [][]forecast.Tick{f.Started, f.NotStarted} {
		for _, t := range list {
			coming[t.Namespace+"/"+t.Name] = append(coming[t.Namespace+"/"+t.Name], t)
		}
	}
	for i := range d.Rows {
		d.Rows[i].Lane = d.Axis.lane(d.Rows[i].object, coming[d.Rows[i].Key], trigger)
		d.Rows[i].Closed, d.Rows[i].ClosedWhy = closedText(gates.of(d.Rows[i].object))
	}
}

// addChoices adds the links that change the page's filters, and returns the selected outcome and
// trigger.
func (d *restartsData) addChoices(a address, chosen ahead) (outcome, trigger string) {
	for _, of := range aheads {
		d.Ahead = append(d.Ahead, choice{of.text, a.with("for", of.text), of == chosen})
	}
	outcome, trigger = a.get("outcome"), a.get("trigger")
	for _, o := range []string{"", "Succeeded", "Failed", "Missed", "Skipped"} {
		d.Outcomes = append(d.Outcomes, choice{cmp.Or(o, "any"), a.with("outcome", o), o == outcome})
	}
	for _, t := range append([]tidekeeperv1.Trigger{""}, decision.Triggers...) {
		d.Triggers = append(d.Triggers, choice{cmp.Or(string(t), "any"), a.with("trigger", string(t)), string(t) == trigger})
	}
	return outcome, trigger
}

// addForecast adds the data of a forecast to the page: the future restarts, and the ticks
// (scheduled times) that do not lead to a successful restart.
func (d *restartsData) addForecast(f *forecast.Forecast, freezes map[string][]period.Period, ahead ahead, now time.Time, local *time.Location) {
	d.Strip, d.Herd, d.Summary = stripOf(f, freezes, local), herdOf(f, local), f.Summary
	d.Missed, d.AheadText = missedText(f), ahead.words()
	d.addMinutes(f, local)
	unserved := view.UnservedIn(f)
	d.MoreUnserved = max(0, len(unserved)-mostUnserved)
	for _, u := range unserved[:len(unserved)-d.MoreUnserved] {
		row := unservedRow{Count: u.CountText(), First: moment(u.First, now, local), Outcome: u.Outcome, Message: u.Message, More: max(0, len(u.Restarts)-mostNames)}
		if !u.Alike {
			row.Message += "; and others"
		}
		if u.Last.After(u.First) {
			row.Last = moment(u.Last, now, local)
		}
		for _, of := range u.Restarts[:len(u.Restarts)-row.More] {
			row.Restarts = append(row.Restarts, choice{Text: of.Namespace + "/" + of.Name})
		}
		d.Unserved = append(d.Unserved, row)
	}
}

// addMinutes adds a row for each minute in which restarts start, up to mostMinutes. MoreMin counts
// the other minutes.
func (d *restartsData) addMinutes(f *forecast.Forecast, local *time.Location) {
	started, greatest := f.Started, 0
	for _, m := range f.Minutes {
		greatest = max(greatest, m.Started)
	}
	for _, m := range f.Minutes {
		n := 0
		for n < len(started) && started[n].Start.Before(m.Time.Add(time.Minute)) {
			n++
		}
		row := minuteRow{moment(m.Time, f.From, local), m.Started, m.Waiting, tickNames(started[:n]), m.Started == greatest && greatest > 1}
		started = started[n:]
		if len(d.Minutes) == mostMinutes {
			d.MoreMin++
			continue
		}
		d.Minutes = append(d.Minutes, row)
	}
}

// mostNames is the maximum number of names in a table cell.
const mostNames = 6

// tickNames names the ScheduledRestarts of the first mostNames ticks (scheduled times), and counts
// the other ticks.
func tickNames(ticks []forecast.Tick) string {
	var names []string
	for _, t := range ticks[:min(len(ticks), mostNames)] {
		names = append(names, t.Namespace+"/"+t.Name)
	}
	if more := len(ticks) - mostNames; more > 0 {
		names = append(names, "and "+plural(more, "more"))
	}
	return strings.Join(names, ", ")
}
