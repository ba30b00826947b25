// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// ParseSchedule returns the ticks and the windows of a spec. Without a schedule there are no
// ticks.
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
		_, err := schedule.Parse(tidekeeperv1.DefaultSchedule, spec.TimeZone) // The time zone may be wrong.
		return nil, windows, err
	}
	if ticks, err = schedule.Parse(expression, spec.TimeZone); err != nil {
		return nil, nil, err
	}
	return ticks, windows, nil
}

// InWindows returns the ticks for which a restart may be started.
func (in *Input) InWindows() schedule.Ticks {
	return schedule.Ticks{Schedule: in.Ticks, Windows: in.Windows, Offset: in.Offset, Deadline: seconds(in.Restart.Spec.StartingDeadlineSeconds)}
}

func (d *decider) ticks() schedule.Ticks { return d.in.InWindows() }

// wasOutside reports whether a search found no tick inside a window until later than now. It is
// not repeated before, as it takes a while.
func (d *decider) wasOutside() bool {
	until := d.out.Status.NoTickUntil
	return until != nil && d.in.Now.Before(until.Time)
}

// closed returns a blocker if no window is open at a time, or if less is left of it than the
// last restart took.
func (d *decider) closed(at time.Time) *blocker {
	switch {
	case d.in.Invalid != nil && len(d.spec.Windows) > 0:
		return &blocker{reason: tidekeeperv1.ReasonInvalidSchedule, message: d.in.Invalid.Error()}
	case len(d.in.Windows) == 0:
		return nil
	}
	b := &blocker{reason: tidekeeperv1.ReasonWindowClosed}
	closes, open := d.in.Windows.ClosesAt(at)
	if open {
		took := d.lastDuration()
		if !closes.Before(at.Add(took)) {
			return nil
		}
		b.message = fmt.Sprintf("the window closes at %s, and the last restart took %s", formatTime(closes), took)
	} else {
		closes = at
		b.message = "no window is open"
	}
	if opens, ok := d.in.Windows.OpensAt(closes); ok {
		b.until = opens
		b.message += "; the next one opens at " + formatTime(opens)
	}
	return b
}
