// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// explainedTicks is how many ticks explain shows.
const explainedTicks = 10

func (a *app) explainCommand() *cobra.Command {
	var zone, from string
	cmd := &cobra.Command{
		Use:   "explain EXPR",
		Short: "Say what a schedule means, and when it ticks next; needs no cluster",
		Long: `explain puts a schedule into words and shows its next ten ticks. Those that a
change of the clock moves or repeats, and the first after a change, are marked.`,
		Example: `  kubectl tide restarts explain "0 3 * * 1-5" --time-zone Europe/Berlin
  kubectl tide restarts explain "30 2 * * *" --time-zone Europe/Berlin --from 2027-03-26
  kubectl tide restarts explain @weekly`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf(`%s wants a schedule, such as "0 3 * * *"`, cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			// Without quotes, the five fields come one by one.
			expression := strings.Join(args, " ")
			ticks, err := schedule.Parse(expression, zone)
			if err != nil {
				return err
			}
			location, err := time.LoadLocation(ticks.Zone())
			if err != nil {
				return err
			}
			after := a.now()
			if from != "" {
				if after, err = parseTime(from, location); err != nil {
					return err
				}
				after = after.Add(-time.Nanosecond) // a tick at that time counts
			}
			text, err := explainSchedule(expression, ticks, location, after)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, text.words)
			fmt.Fprintln(a.out)
			return text.table.writeTo(a.out, a.screen)
		},
	}
	cmd.Flags().StringVar(&zone, "time-zone", "", "IANA name of the time `ZONE`, such as Europe/Berlin (default UTC)")
	cmd.Flags().StringVar(&from, "from", "", "the `TIME` to begin at, such as 2027-03-26, 2027-03-26T12:00 or with an offset (default now)")
	return cmd
}

// parseTime reads a time as people write it, on a zone's clock unless it says
// otherwise.
func parseTime(text string, in *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		t, err := time.ParseInLocation(layout, text, in)
		if err != nil {
			continue
		}
		// A time that the clock shows twice is the first of the two, as for ticks.
		if s := stretchAround(t, in); layout != time.RFC3339 && !s.start.IsZero() {
			if shift := s.offset - offsetAt(s.start.Add(-1), in); shift < 0 && t.Before(s.start.Add(-shift)) {
				t = t.Add(shift)
			}
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: write such as 2027-03-26, 2027-03-26T12:00 or 2027-03-26T12:00:00+01:00", text)
}

type explanation struct {
	words string
	table table
}

// explainSchedule says what a schedule means and when it ticks after a time.
func explainSchedule(expression string, ticks *schedule.Schedule, in *time.Location, after time.Time) (explanation, error) {
	wall, err := timesOf(expression)
	if err != nil {
		return explanation{}, err
	}
	e := explanation{words: fmt.Sprintf("%s (%s)", wall, ticks.Zone())}
	e.table.header = []string{"TICK", "UTC", "CLOCK"}
	before := after
	for range explainedTicks {
		tick, ok := ticks.Next(before)
		if !ok {
			break
		}
		e.table.rows = append(e.table.rows, []cell{
			{text: tick.In(in).Format("Mon 2 Jan 2006 15:04 MST")},
			{text: tick.UTC().Format(time.RFC3339)},
			{text: clockMark(wall, tick, before, in), hue: yellow},
		})
		before = tick
	}
	return e, nil
}

// clockMark says what a change of the clock has to do with a tick, given the
// one before; "" if nothing.
func clockMark(wall times, tick, before time.Time, in *time.Location) string {
	here := stretchAround(tick, in)
	local := tick.In(in)
	if !here.start.IsZero() {
		earlier := offsetAt(here.start.Add(-1), in)
		switch shift := here.offset - earlier; {
		case shift > 0 && tick.Equal(here.start) && !wall.names(local):
			wall := tick.UTC().Add(here.offset) // told as if it were UTC
			return fmt.Sprintf("%s to %s do not exist: runs at their end", wall.Add(-shift).Format("15:04"), wall.Add(-time.Minute).Format("15:04"))
		case shift < 0 && tick.Before(here.start.Add(-shift)):
			return local.Format("15:04") + " for the second time: the clock was put back"
		case before.Before(here.start) && shift != 0:
			return change(here.start, shift, in)
		}
	}
	if !here.end.IsZero() {
		if shift := offsetAt(here.end, in) - here.offset; shift < 0 && !tick.Before(here.end.Add(shift)) {
			return local.Format("15:04") + " for the first time of two"
		}
	}
	return ""
}

// change says that the clock was changed since the tick before.
func change(at time.Time, shift time.Duration, in *time.Location) string {
	how := "forward"
	if shift < 0 {
		how, shift = "back", -shift
	}
	return fmt.Sprintf("the clock was put %s by %s on %s", how, length(shift), at.Add(-1).In(in).Format("2 Jan"))
}

// length writes a duration without the zeros.
func length(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// clockStretch is a time in which a zone's clock runs unchanged.
type clockStretch struct {
	start, end time.Time // zero: none
	offset     time.Duration
}

// longest is how far away a change of the clock is of interest.
const longest = 48 * time.Hour

// stretchAround returns the changes of the clock around a time. Those where
// the offset stays the same are none (a zone's table may begin anew every
// year).
func stretchAround(t time.Time, in *time.Location) clockStretch {
	s := clockStretch{offset: offsetAt(t, in)}
	start, end := t.In(in).ZoneBounds()
	if !start.IsZero() && offsetAt(start.Add(-1), in) != s.offset {
		s.start = start.UTC()
	}
	// In leap years, Go tells an end that is past on 31 December.
	if !end.IsZero() && end.After(t) && end.Before(t.Add(longest)) && offsetAt(end, in) != s.offset {
		s.end = end.UTC()
	}
	return s
}

func offsetAt(t time.Time, in *time.Location) time.Duration {
	_, seconds := t.In(in).Zone()
	return time.Duration(seconds) * time.Second
}
