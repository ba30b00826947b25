// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// explainRestart explains the schedule of a ScheduledRestart in words, and prints the expected
// outcome of each of the next o.count ticks (scheduled times).
func (o *explainOptions) explainRestart(ctx context.Context) error {
	found := historyOptions{Env: o.Env, ref: *o.ref}
	r, err := found.read(ctx)
	if err != nil {
		return err
	}
	ticks, windows, err := decision.ParseSchedule(&r.Spec)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	if ticks == nil {
		fmt.Fprintf(o.Console.Out, "%s has no schedule: it is restarted %s\n", r.Name, triggers(&r.Spec))
		return nil
	}
	explained := view.Explain(ticks, o.Now(), o.count)
	next := nextOptions{Env: o.Env, namespace: r.Namespace, ahead: cmdutil.Duration{Duration: longestCalendar}}
	if n := len(explained.Ticks); n > 0 {
		// No restart starts after the deadline of its tick (scheduled time). A forecast until the
		// deadline of the last tick therefore includes the outcomes of all ticks.
		last := explained.Ticks[n-1].Time.Add(view.OffsetOf(r) + time.Duration(r.Spec.StartingDeadlineSeconds)*time.Second + time.Minute)
		next.ahead.Duration = min(longestCalendar, last.Sub(o.Now()))
	}
	read, calendar, err := next.calendar(ctx)
	if err != nil {
		return err
	}
	suspended := ""
	if r.Spec.Suspend {
		suspended = "; it is suspended"
	}
	fmt.Fprintf(o.Console.Out, "%s (%s)%s\n\n", explained.Words, explained.Zone, suspended)
	f := fates{of: r, outside: len(windows) > 0, until: o.Now().Add(next.ahead.Duration), calendar: &calendar, local: o.Local, now: o.Now()}
	t := explainTable(explained.Ticks)
	t.Columns = append(t.Columns, term.Column{Header: "EXPECTED", Text: 20})
	texts := f.texts(explained.Ticks)
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], term.Text(texts[i]))
	}
	if err := o.Console.Write(t); err != nil {
		return err
	}
	var unobserved view.Unobserved
	unobserved.AddRestart(r, o.Now())
	o.NoteManager(read.manager, unobserved, cmdutil.ThenWaits)
	return nil
}

// fates looks up the expected outcomes of a ScheduledRestart's ticks (scheduled times) in a
// calendar of future starts.
type fates struct {
	of *tidekeeperv1.ScheduledRestart
	// outside is set if the ScheduledRestart has windows (the periods in which restarts may start).
	// The calendar then omits ticks outside of the windows.
	outside bool
	// until is the end of the period that the calendar covers.
	until    time.Time
	calendar *view.Calendar
	local    *time.Location
	now      time.Time
}

// texts describes the expected outcome of each tick (scheduled time): the time at which the restart
// starts, or the reason why the tick is missed.
func (f *fates) texts(ticks []view.Tick) []string {
	texts := make([]string, len(ticks))
	set := func(tick time.Time, text string, earlier int) {
		for i := len(ticks) - 1; i >= 0; i-- {
			if at := ticks[i].Time; at.Equal(tick) || earlier > 0 && at.Before(tick) && texts[i] == "" {
				if at.Before(tick) {
					earlier--
				}
				texts[i] = text
			}
		}
	}
	for _, m := range f.calendar.Minutes {
		for _, s := range append(m.Starts, m.NotStarted...) {
			switch {
			case s.Name != f.of.Name || s.Namespace != f.of.Namespace:
			case s.Outcome != "":
				set(s.Tick, string(s.Outcome)+": "+s.Reason, s.EarlierTicks)
			default:
				set(s.Tick, "starts "+term.Moment(s.Start, f.now, f.local), 0)
			}
		}
	}
	for i, tick := range ticks {
		switch {
		case texts[i] != "":
		case tick.Time.After(f.until):
			texts[i] = "-"
		case f.of.Spec.Suspend:
			texts[i] = "suspended"
		case view.StoppedByFailures(f.of):
			texts[i] = "stopped after failures"
		case f.outside:
			texts[i] = "left out: outside its windows"
		default:
			texts[i] = "waits"
		}
	}
	return texts
}
