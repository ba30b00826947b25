// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/term"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// The bounds of what the page lists.
const (
	mostRestartRows = 60
	mostMinutes     = 40
	mostUnserved    = 8
)

// restartsData is the data of the page of restarts.
type restartsData struct {
	Problems  []string
	NoManager string
	Zone      string
	Ahead     []choice
	Outcomes  []choice
	Triggers  []choice
	Filter    string
	Namespace string
	Strip     *strip
	Herd      *herd
	// Freezes are those that have not ended, and FreezeActions creates one.
	Freezes       []freezeRow
	FreezeActions []action
	Summary       forecast.Summary
	Settings      string
	// OldForecast says that what is coming is old, and why; NoForecast that nothing is known of it.
	OldForecast string
	NoForecast  bool
	Minutes     []minuteRow
	MoreMin     int
	Unserved    []unservedRow
	// MoreUnserved is how many ticks the list leaves out.
	MoreUnserved int
	Rows         []restartRow
	More         int
	Axis         *laneAxis
	Restart      *restartPanel
}

// minuteRow is a minute in which restarts start.
type minuteRow struct {
	Time           string
	Count, Waiting int
	Names          string
	Greatest       bool
}

// unservedRow is ticks that are not restarted, or fail.
type unservedRow struct {
	Time, Names, Message string
	Count                int
	Outcome              view.Outcome
}

// restartRow is a ScheduledRestart in the table.
type restartRow struct {
	view.Restart
	Key    string // namespace/name
	Href   string
	Last   string
	Never  bool
	Next   string
	Lane   *lane
	Chosen bool
	// Closed names the gates that are closed now, "" if all are open, and ClosedWhy says why.
	Closed, ClosedWhy string
	object            *tidekeeperv1.ScheduledRestart
}

// ahead is how far the page looks ahead.
type ahead struct {
	text string
	time.Duration
}

var aheads = []ahead{{"24h", 24 * time.Hour}, {"48h", 48 * time.Hour}, {"7d", 7 * 24 * time.Hour}}

// restartsPage is the page of restarts, past and coming.
func restartsPage(r *request) (*page, error) {
	now, local := r.now(), r.site.local
	d := &restartsData{
		Problems: r.restartProblems(), NoManager: r.noManager(), Zone: term.Zone(now, local), Filter: r.query.Get("q"), Namespace: r.query.Get("namespace"),
		Settings: r.settingsText(), OldForecast: r.played.note(now, local),
	}
	ahead := r.ahead()
	only, trigger := r.addChoices(d, ahead)
	d.Freezes, d.FreezeActions = r.freezeRows(), r.freezeActions()
	f := r.played.Forecast
	p := &page{title: "Restarts", template: "restarts", data: d, json: f, command: append([]string{"restarts", "forecast", "--for", ahead.text}, r.namespaceFlags()...)}
	if r.snapshot.problem(kindRestarts) != "" {
		return p, nil
	}
	if d.NoForecast = !r.played.Known; !d.NoForecast {
		r.addForecast(d, &f, r.freezes())
	}
	rows := slices.DeleteFunc(r.restartRows(), func(row restartRow) bool {
		return only != "" && !strings.HasPrefix(row.Outcome.Text, only)
	})
	d.More = max(0, len(rows)-mostRestartRows)
	d.Rows = rows[:min(len(rows), mostRestartRows)]
	d.Axis = &laneAxis{From: now.Add(-laneSpan), Now: now, Until: now.Add(laneSpan), local: local}
	coming := map[string][]forecast.Tick{}
	for _, list := range [][]forecast.Tick{f.Started, f.NotStarted} {
		for _, t := range list {
			coming[t.Namespace+"/"+t.Name] = append(coming[t.Namespace+"/"+t.Name], t)
		}
	}
	for i := range d.Rows {
		d.Rows[i].Lane = d.Axis.lane(d.Rows[i].object, coming[d.Rows[i].Key], trigger)
		d.Rows[i].Closed, d.Rows[i].ClosedWhy = closedText(r.gatesOf(d.Rows[i].object))
	}
	if key := r.query.Get("restart"); key != "" {
		i := slices.IndexFunc(rows, func(row restartRow) bool { return row.Key == key })
		if i >= 0 {
			d.Restart = r.restartPanel(&rows[i])
		}
	}
	return p, nil
}

// ahead is how far the address looks ahead.
func (r *request) ahead() ahead {
	i := max(0, slices.IndexFunc(aheads, func(a ahead) bool { return a.text == r.query.Get("for") }))
	return aheads[i]
}

// addChoices adds what may be chosen, and returns the outcome and the trigger that are.
func (r *request) addChoices(d *restartsData, chosen ahead) (outcome, trigger string) {
	for _, a := range aheads {
		d.Ahead = append(d.Ahead, choice{a.text, r.with("for", a.text), a == chosen})
	}
	outcome, trigger = r.query.Get("outcome"), r.query.Get("trigger")
	for _, o := range []string{"", "Succeeded", "Failed", "Missed", "Skipped"} {
		d.Outcomes = append(d.Outcomes, choice{cmp.Or(o, "any"), r.with("outcome", o), o == outcome})
	}
	for _, t := range append([]tidekeeperv1.Trigger{""}, decision.Triggers...) {
		d.Triggers = append(d.Triggers, choice{cmp.Or(string(t), "any"), r.with("trigger", string(t)), string(t) == trigger})
	}
	return outcome, trigger
}

// addForecast adds what is coming.
func (r *request) addForecast(d *restartsData, f *forecast.Forecast, freezes map[string][]period.Period) {
	local := r.site.local
	d.Strip, d.Herd, d.Summary = stripOf(f, freezes, local), herdOf(f, local), f.Summary
	d.addMinutes(f, local)
	for _, u := range view.UnservedIn(f) {
		if len(d.Unserved) == mostUnserved {
			d.MoreUnserved += u.Count
		} else {
			d.Unserved = append(d.Unserved, unservedRow{term.Moment(u.Tick, r.now(), local), tickNames(u.Ticks), u.Message, u.Count, u.Outcome})
		}
	}
}

// restartProblems are the problems of the page. Pods are needed only where their age is limited.
func (r *request) restartProblems() []string {
	kinds := restartsKinds
	if !r.limitsPodAge() {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == kindPods })
	}
	return r.problems(kinds...)
}

// addMinutes adds the minutes in which restarts start.
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
		row := minuteRow{term.Moment(m.Time, f.From, local), m.Started, m.Waiting, tickNames(started[:n]), m.Started == greatest && greatest > 1}
		started = started[n:]
		if len(d.Minutes) == mostMinutes {
			d.MoreMin++
			continue
		}
		d.Minutes = append(d.Minutes, row)
	}
}

// mostNames is how many restarts a cell names.
const mostNames = 6

// tickNames lists the names of what has ticks, the first of them.
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

// restartRows returns the ScheduledRestarts that match the filters: first those in trouble, then
// in the order in which they start.
func (r *request) restartRows() []restartRow {
	list := r.restarts()
	values := make([]tidekeeperv1.ScheduledRestart, len(list))
	for i := range list {
		values[i] = *list[i]
	}
	shared := view.SharedTargets(values)
	rows := []restartRow{}
	for _, object := range list {
		shown := view.RestartOf(object, shared)
		shown.AddFreezes(object, r.freezes()[object.Namespace], r.now())
		row := restartRow{Restart: shown, object: object, Key: object.Namespace + "/" + object.Name, Next: "-", Last: "-"}
		q := r.query.Get("q")
		if !r.isShown(row.Namespace) || q != "" && !strings.Contains(row.Key+" "+row.Target+" "+row.Status.Reason, q) {
			continue
		}
		row.Href, row.Chosen = "/restarts"+r.with("restart", row.Key), r.query.Get("restart") == row.Key
		if row.LastTick != nil {
			row.Last = term.Ago(*row.LastTick, r.now()) + " ago"
		}
		switch {
		case row.ActiveSince != nil:
			row.Next = "in progress for " + term.Ago(*row.ActiveSince, r.now())
			if row.Refused != "" {
				row.Next += ", an eviction is refused"
			}
		case row.NextStart != nil:
			row.Next = term.Coming(*row.NextStart, r.now(), r.site.local) + row.Frozen.Text(func(t time.Time) string { return term.Moment(t, r.now(), r.site.local) })
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, compareRestarts)
	return rows
}

// compareRestarts puts what is in trouble first, and then what starts first.
func compareRestarts(a, b restartRow) int {
	return cmp.Or(cmp.Compare(trouble(&b), trouble(&a)), compareTimes(a.NextStart, b.NextStart))
}

// trouble is greater for what needs a person more.
func trouble(row *restartRow) int {
	return badness[row.Status.Severity] + badness[row.Outcome.Severity]
}

// compareTimes puts times that are not known last.
func compareTimes(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return a.Compare(*b)
	}
}

// restartPanel is one ScheduledRestart in detail.
type restartPanel struct {
	restartRow
	Close   string
	Words   string // of the schedule
	Gates   *view.Gates
	NoGates string
	History []historyRow
	Actions []action
}

// historyRow is what became of one tick.
type historyRow struct {
	Tick, Waited, Took, Median, Worst string
	view.HistoryEntry
}

func (r *request) restartPanel(row *restartRow) *restartPanel {
	p := &restartPanel{restartRow: *row, Words: wordsOf(row.object), Close: r.with("restart", ""), Actions: r.actionsFor(row.object)}
	for _, e := range view.HistoryOf(row.object, r.now()) {
		h := historyRow{Tick: e.Tick.In(r.site.local).Format("2 Jan 15:04:05"), Waited: "-", Took: "-", HistoryEntry: e}
		if e.Waited != nil {
			h.Waited, h.Took = e.Waited.String(), e.Took.String()
		}
		h.Median, h.Worst = e.StartupTexts()
		p.History = append(p.History, h)
	}
	gates, err := r.gatesOf(row.object)
	if err != nil {
		p.NoGates = err.Error()
		return p
	}
	p.Gates = gates
	return p
}
