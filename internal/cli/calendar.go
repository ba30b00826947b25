// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// longestCalendar bounds what is worked out: a year of every minute is half a
// million ticks for each ScheduledRestart.
const longestCalendar = 31 * 24 * time.Hour

func (a *app) nextCommand() *cobra.Command {
	var all bool
	var format data
	ahead := span(24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "next",
		Short: "The calendar of the coming restarts, minute by minute",
		Long: `next shows when restarts will be started, with how many start in the same
minute: the herd. The spread of each is counted in. Left out are those that are
suspended, stopped after failures, or have a schedule that cannot be used.
Times are on the clock of this machine.`,
		Example: `  kubectl tide restarts next
  kubectl tide restarts next --for 7d -A`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := format.check(); err != nil {
				return err
			}
			if time.Duration(ahead) > longestCalendar {
				return fmt.Errorf("--for: at most 31d are worked out")
			}
			list, err := a.listRestarts(cmd.Context(), all, "")
			if err != nil {
				return err
			}
			now := a.now()
			calendar := calendarOf(list.Items, now, now.Add(time.Duration(ahead)))
			for _, problem := range calendar.problems {
				fmt.Fprintln(a.errOut, "left out: "+oneLine(problem))
			}
			if done, err := format.print(a.out, calendar.minutes); done {
				return err
			}
			if len(calendar.minutes) == 0 {
				fmt.Fprintf(a.errOut, "No restart will be started within %s.\n", ahead.String())
				return nil
			}
			return calendar.table(all, a.local, a.screen).writeTo(a.out, a.screen)
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "those of all namespaces")
	cmd.Flags().Var(&ahead, "for", "how far to look ahead, such as 24h or 7d")
	format.addTo(cmd)
	return cmd
}

// calendar is the restarts that will be started.
type calendar struct {
	minutes  []minute
	problems []string
}

// minute is the restarts that start in the same minute.
type minute struct {
	Time   time.Time `json:"time"` // its beginning
	Count  int       `json:"count"`
	Starts []start   `json:"starts"`
}

// start is the start of one restart.
type start struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Target    string    `json:"target"`
	Tick      time.Time `json:"tick"`
	Start     time.Time `json:"start"` // the tick and the spread
}

// calendarOf works out what is started after a time and not after another. A
// tick that is due already, and waits for something, has no time and is not in it.
func calendarOf(items []tidekeeperv1.ScheduledRestart, now, until time.Time) calendar {
	var c calendar
	// Many have the same schedule and differ only in their spread.
	type question struct{ expression, zone string }
	known := map[question][]time.Time{}
	const longestSpread = 24 * time.Hour
	minutes := map[time.Time][]start{}
	for i := range items {
		r := &items[i]
		if r.Spec.Suspend || stoppedByFailures(r) || !r.DeletionTimestamp.IsZero() {
			continue
		}
		q := question{r.Spec.Schedule, r.Spec.TimeZone}
		ticks, ok := known[q]
		if !ok {
			s, err := schedule.Parse(q.expression, q.zone)
			if err != nil {
				c.problems = append(c.problems, fmt.Sprintf("%s/%s: %s", r.Namespace, r.Name, err))
				continue
			}
			ticks = ticksBetween(s, now.Add(-longestSpread), until)
			known[q] = ticks
		}
		offset := offsetOf(r)
		for _, tick := range ticks {
			if at := tick.Add(offset); at.After(now) && !at.After(until) {
				m := at.Truncate(time.Minute)
				minutes[m] = append(minutes[m], start{
					Namespace: r.Namespace, Name: r.Name, Target: r.Spec.TargetRef.Kind + "/" + r.Spec.TargetRef.Name, Tick: tick, Start: at,
				})
			}
		}
	}
	c.minutes = []minute{}
	for at, starts := range minutes {
		slices.SortFunc(starts, func(a, b start) int {
			return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		c.minutes = append(c.minutes, minute{at, len(starts), starts})
	}
	slices.SortFunc(c.minutes, func(a, b minute) int { return a.Time.Compare(b.Time) })
	slices.Sort(c.problems)
	return c
}

// ticksBetween returns the ticks after a time and not after another.
func ticksBetween(s *schedule.Schedule, after, until time.Time) []time.Time {
	var ticks []time.Time
	for tick, ok := s.Next(after); ok && !tick.After(until); tick, ok = s.Next(tick) {
		ticks = append(ticks, tick)
	}
	return ticks
}

// herdWidth is how long the bar of the greatest herd is.
const herdWidth = 16

// table is the calendar for people: a line for each minute in which something
// starts, on a terminal with a bar.
func (c calendar) table(namespaces bool, local *time.Location, s screen) *table {
	t := &table{header: []string{"DAY", "TIME", "STARTS", "RESTARTS"}}
	greatest := 0
	for _, m := range c.minutes {
		greatest = max(greatest, m.Count)
	}
	if s.terminal {
		t.header, t.uncut = []string{"DAY", "TIME", "STARTS", "HERD", "RESTARTS"}, 4
	}
	lastDay := ""
	for _, m := range c.minutes {
		at := m.Time.In(local)
		day := at.Format("Mon 2 Jan")
		shown := day
		if s.terminal && day == lastDay {
			shown = "" // for programs, each line is complete
		}
		lastDay = day
		var names []string
		for _, start := range m.Starts {
			name := start.Name
			if namespaces {
				name = start.Namespace + "/" + name
			}
			names = append(names, name)
		}
		row := []cell{{shown, plain}, {at.Format("15:04"), plain}, {fmt.Sprint(m.Count), plain}}
		if s.terminal {
			h := plain
			if m.Count == greatest && greatest > 1 {
				h = yellow
			}
			row = append(row, cell{bar(float64(m.Count)/float64(greatest), herdWidth), h})
		}
		t.rows = append(t.rows, append(row, cell{strings.Join(names, ", "), plain}))
	}
	return t
}
