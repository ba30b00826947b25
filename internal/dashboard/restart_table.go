// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// restartTable builds the table rows that show ScheduledRestarts.
type restartTable struct {
	now     time.Time
	local   *time.Location
	address address
	freezes map[string][]period.Period // Freezes that apply to a namespace, keyed by the namespace's name
}

// restartRow is a table row that shows a ScheduledRestart.
type restartRow struct {
	view.Restart
	Key  string // namespace/name
	Href string
	// Of is the kind and name of the restart's target. If the target and the ScheduledRestart have
	// the same name, it is only the kind.
	Of string
	// Zone is the schedule's time zone if its local time differs from the page's. It is ""
	// otherwise.
	Zone       string
	Last, Next shownTime
	Lane       *lane
	Chosen     bool
	// Closed lists the names of the closed gates, the conditions that prevent a restart from
	// starting. It is "" if all gates are open. ClosedWhy explains why the gates are closed.
	Closed, ClosedWhy string
	object            *tidekeeperv1.ScheduledRestart
}

// rows returns a row for each ScheduledRestart that matches the page's filters. Rows with more
// serious problems come first, and equally serious rows are sorted by the next start. The caller
// must complete each displayed row with [restartTable.complete].
func (t *restartTable) rows(list []*tidekeeperv1.ScheduledRestart) []restartRow {
	shared := view.Shared{}
	for _, object := range list {
		shared.Add(object)
	}
	rows := make([]restartRow, 0, len(list))
	for _, object := range list {
		shown := view.RestartOf(object, shared)
		shown.AddFreezes(object, t.freezes[object.Namespace], t.now)
		row := restartRow{Restart: shown, object: object, Key: object.Namespace + "/" + object.Name}
		if t.address.shows(row.Namespace) && t.address.matches(row.Key+" "+row.Target) {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, compareRestarts)
	return rows
}

// complete adds the texts and the links to a row. It is called only for displayed rows, because it
// would take long for all rows of a large cluster.
func (t *restartTable) complete(row *restartRow) {
	row.Of, row.Next, row.Zone = row.Target, shownTime{Text: "–"}, zoneBeside(row.TimeZone, t.now, t.local)
	row.Href, row.Chosen = "/restarts"+t.address.with("restart", row.Key), t.address.get("restart") == row.Key
	if row.object.Spec.TargetRef.Name == row.object.Name {
		row.Of = row.object.Spec.TargetRef.Kind
	}
	if row.LastTick != nil {
		row.Last = ago(*row.LastTick, t.now, t.local)
	}
	switch {
	case row.ActiveSince != nil:
		row.Next = timeText(*row.ActiveSince, t.local, "in progress for "+term.Ago(*row.ActiveSince, t.now))
		if row.Refused != "" {
			row.Next.Text += ", an eviction is refused"
		}
	case row.NextStart != nil:
		frozen := row.Frozen.Text(func(until time.Time) string { return term.Moment(until, t.now, t.local) })
		row.Next = timeText(*row.NextStart, t.local, term.Coming(*row.NextStart, t.now, t.local)+frozen)
	}
}

// compareRestarts orders rows by the seriousness of their problems, worst first, then by the time
// of the next start.
func compareRestarts(a, b restartRow) int {
	return cmp.Or(cmp.Compare(trouble(&b), trouble(&a)), compareTimes(a.NextStart, b.NextStart))
}

// trouble returns a number that increases with the seriousness of a row's problems.
func trouble(row *restartRow) int {
	return badness[row.Status.Severity] + badness[row.Outcome.Severity]
}

// compareTimes orders times for sorting, the earliest first. nil (an unknown time) comes last.
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

// restartPanel is the data of the panel with a ScheduledRestart's details.
type restartPanel struct {
	restartRow
	Close   string
	Words   string // schedule in words
	Gates   *view.Gates
	NoGates string
	History []historyRow
	Actions []action
}

// historyRow shows a past tick (scheduled time) of a ScheduledRestart, and its outcome.
type historyRow struct {
	Tick                        shownTime
	Waited, Took, Median, Worst string
	view.HistoryEntry
}

// panel returns the panel with a ScheduledRestart's details.
func (t *restartTable) panel(row *restartRow, gates *gateReader, b *buttons) *restartPanel {
	p := &restartPanel{restartRow: *row, Words: wordsOf(row.object), Close: t.address.with("restart", ""), Actions: b.restart(row.object)}
	for _, e := range view.HistoryOf(row.object, t.now) {
		h := historyRow{Tick: moment(e.Tick, t.now, t.local), Waited: "–", Took: "–", HistoryEntry: e}
		if e.Waited != nil {
			h.Waited, h.Took = view.FormatLength(*e.Waited), view.FormatLength(*e.Took)
		}
		h.Median, h.Worst = e.StartupTexts()
		p.History = append(p.History, h)
	}
	read, err := gates.of(row.object)
	if err != nil {
		p.NoGates = err.Error()
		return p
	}
	slices.SortStableFunc(read.Gates, func(a, b decision.Gate) int { return cmp.Compare(rank(a.Open), rank(b.Open)) })
	p.Gates = read
	return p
}

// rank returns 0 for a closed gate (start condition) and 1 for an open gate, to sort closed gates
// before open gates.
func rank(open bool) int {
	if open {
		return 1
	}
	return 0
}
