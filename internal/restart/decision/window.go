// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// ParseSchedule parses the schedule and the windows of a spec. Without a schedule, ticks is nil.
func ParseSchedule(spec *tidekeeperv1.ScheduledRestartSpec) (ticks *schedule.Schedule, windows schedule.Windows, err error) {
	for i, w := range spec.Windows {
		opens, err := schedule.Parse(string(w.Schedule), spec.TimeZone)
		if err != nil {
			return nil, nil, fmt.Errorf("windows[%d]: %w", i, err)
		}
		windows = append(windows, schedule.Window{Opens: opens, Length: seconds(w.DurationSeconds)})
	}
	expression := string(spec.GetSchedule())
	if expression == "" {
		_, err := schedule.Parse(tidekeeperv1.DefaultSchedule, spec.TimeZone) // Any schedule will do, to validate the time zone.
		return nil, windows, err
	}
	if ticks, err = schedule.Parse(expression, spec.TimeZone); err != nil {
		return nil, nil, err
	}
	return ticks, windows, nil
}

// InWindows returns the ticks of the schedule that count: the ticks for which a window is open at
// some time between their due time and their deadline.
func (in *Input) InWindows() schedule.Ticks {
	return schedule.Ticks{Schedule: in.Ticks, Windows: in.Windows, Offset: in.Offset, Deadline: seconds(in.Restart.Spec.StartingDeadlineSeconds)}
}

// opensAt returns the earliest time at or after the due time at which a window is open. If no
// window ever opens, it returns the due time.
func opensAt(windows schedule.Windows, due time.Time) time.Time {
	if opens, ok := windows.OpensAt(due); ok {
		return opens
	}
	return due
}

// windowGate keeps restarts from starting while no window is open, or while the remaining time of
// the open window is shorter than the duration of the last successful restart.
type windowGate struct {
	windows schedule.Windows
	// wanted is true if the spec has windows, even if they are invalid.
	wanted  bool
	invalid error
	history *history
}

func (g *windowGate) blocks(at, _ time.Time) *blocker {
	switch {
	case g.invalid != nil && g.wanted:
		return &blocker{reason: tidekeeperv1.ReasonInvalidSchedule, message: g.invalid.Error()}
	case len(g.windows) == 0:
		return nil
	}
	b := &blocker{reason: tidekeeperv1.ReasonWindowClosed}
	closes, open := g.windows.ClosesAt(at)
	if open {
		took := g.history.lastDuration()
		if !closes.Before(at.Add(took)) {
			return nil
		}
		b.message = fmt.Sprintf("the window closes at %s, and the last restart took %s", formatTime(closes), took)
	} else {
		closes = at
		b.message = "no window is open"
	}
	if opens, ok := g.windows.OpensAt(closes); ok {
		b.until = opens
		b.message += "; the next one opens at " + formatTime(opens)
	}
	return b
}

func (g *windowGate) describe(at, due time.Time) Gate {
	open := "there are no windows: at any time"
	if len(g.windows) > 0 {
		closes, _ := g.windows.ClosesAt(at)
		open = "a window is open until " + formatTime(closes)
	}
	return describeAs(GateWindow, g.blocks(at, due), open)
}
