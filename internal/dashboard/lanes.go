// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// laneSpan is the length of the past and of the future that a lane covers. A lane is the chart of
// the restarts of a ScheduledRestart over time.
const laneSpan = 24 * time.Hour

// laneAxis is the time axis that all lanes (the charts of ScheduledRestarts) have in common.
type laneAxis struct {
	From, Now, Until time.Time
	local            *time.Location
}

// lane shows a ScheduledRestart's past and future restarts on a time axis.
type lane struct {
	Windows []span
	Bars    []laneBar
	Title   string
}

// span is an interval on a time axis, in thousandths of the axis' width.
type span struct{ X, Width int64 }

// laneBar shows a tick (a scheduled time of a restart) on a lane: a thin line while the tick waits,
// and a thick bar while its restart is in progress.
type laneBar struct {
	Wait, Take span
	Is         string // done, failed, missed, coming or active
	// Flag is the trigger of the tick. The page draws a mark above the bar for a user's request,
	// below the bar for the age of pods, and on both sides for a configuration change.
	Flag  string // request, age or change; "" for the schedule
	Title string
}

// flags maps each trigger of a restart, except the schedule, to the value of laneBar.Flag.
var flags = map[string]string{string(tidekeeperv1.TriggerRequest): "request", string(tidekeeperv1.TriggerAge): "age", string(tidekeeperv1.TriggerChange): "change"}

func (a *laneAxis) x(t time.Time) int64 {
	return min(1000, max(0, int64(1000*t.Sub(a.From).Seconds()/a.Until.Sub(a.From).Seconds())))
}

func (a *laneAxis) span(from, to time.Time, least int64) span {
	x := a.x(from)
	width := max(least, a.x(to)-x)
	return span{min(x, 1000-width), width}
}

// mostLaneParts is the maximum number of bars that a lane (the chart of a ScheduledRestart) shows,
// and also the maximum number of restart windows that it shows.
const mostLaneParts = 100

// lane returns the lane of a ScheduledRestart. coming lists its future ticks (scheduled times). If
// trigger is not empty, the lane shows only the ticks with this trigger.
func (a *laneAxis) lane(r *tidekeeperv1.ScheduledRestart, coming []forecast.Tick, trigger string) *lane {
	l := &lane{Windows: a.windows(r)}
	done := 0
	for _, e := range view.HistoryOf(r, a.Now) {
		if e.Tick.Before(a.From) || len(l.Bars) >= mostLaneParts/2 || trigger != "" && e.Trigger != trigger {
			continue
		}
		start, end := e.Tick, e.Tick
		b := laneBar{Is: "missed", Flag: flags[e.Trigger], Title: term.Clock(e.Tick, a.Now, a.local) + " " + e.Trigger + ": " + e.Outcome.Text}
		if e.Waited != nil {
			start = e.Tick.Add(*e.Waited)
			end = start.Add(*e.Took)
			b.Title += fmt.Sprintf(", waited %s, took %s", view.FormatLength(*e.Waited), view.FormatLength(*e.Took))
			b.Is = "done"
			if e.Outcome.Severity == view.Bad {
				b.Is = "failed"
			} else if e.Outcome.Severity != view.Good {
				b.Is = "active"
			}
		}
		b.Wait, b.Take = a.span(e.Tick, start, 0), a.span(start, end, 5)
		l.Bars = append(l.Bars, b)
		done++
	}
	for _, t := range coming {
		if len(l.Bars) >= mostLaneParts || t.Tick.After(a.Until) {
			break
		}
		if trigger != "" && string(t.Trigger) != trigger {
			continue
		}
		b := laneBar{Is: "coming", Flag: flags[string(t.Trigger)], Title: term.Clock(t.Tick, a.Now, a.local) + " " + string(t.Trigger) + ": coming"}
		if t.Start.IsZero() {
			b.Is, b.Title = "missed", b.Title+", "+string(t.Outcome)+" "+t.Reason
			b.Take = a.span(t.Tick, t.Tick, 5)
		} else {
			if t.Start.Before(a.Now) {
				continue // The past ticks already include the restart in progress.
			}
			b.Wait, b.Take = a.span(t.Tick, t.Start, 0), a.span(t.Start, t.Completion, 5)
		}
		l.Bars = append(l.Bars, b)
	}
	l.Title = fmt.Sprintf("%s/%s: %s in the last 24 h, %d coming", r.Namespace, r.Name, plural(done, "tick"), len(l.Bars)-done)
	return l
}

// windows returns the intervals on the time axis in which the restart windows of the
// ScheduledRestart are open. It returns nil if the spec contains no windows or is invalid.
func (a *laneAxis) windows(r *tidekeeperv1.ScheduledRestart) []span {
	_, windows, err := decision.ParseSchedule(&r.Spec)
	if err != nil || len(windows) == 0 {
		return nil
	}
	var spans []span
	for at := a.From; len(spans) < mostLaneParts; {
		opens, ok := windows.OpensAt(at)
		if !ok || opens.After(a.Until) {
			break
		}
		closes, open := windows.ClosesAt(opens)
		if !open || closes.IsZero() {
			closes = a.Until
		}
		spans = append(spans, a.span(opens, closes, 1))
		if !closes.After(at) {
			break
		}
		at = closes
	}
	return spans
}
