// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/options"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// mostTicks is the maximum number of ticks (scheduled times) that explain shows.
const mostTicks = 1000

// explainOptions holds the flags and arguments of restarts explain.
type explainOptions struct {
	*cmdutil.Env
	zone, from string
	count      int

	// ref names a ScheduledRestart or its workload. It is nil if the arguments are a cron schedule.
	ref      *reference
	schedule *schedule.Schedule
	after    time.Time
}

func newExplainCommand(e *cmdutil.Env) *cobra.Command {
	o := &explainOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "explain EXPR | TYPE/NAME",
		Short: "Explain a schedule in words and list its next ticks; needs no cluster",
		Long: `explain puts a schedule into words and lists its next ticks. Ticks that a clock change
moves or repeats, and the first tick after a clock change, are marked.

With TYPE/NAME, such as scheduledrestart/web or deployment/web, it explains the schedule of
that ScheduledRestart, and EXPECTED shows the expected outcome of each tick of the next 31 days.
Like restarts next, it considers Freezes, windows, the state of the workloads and the
manager's budget.`,
		Example: `  kubectl tide restarts explain "0 3 * * 1-5" --time-zone Europe/Berlin
  kubectl tide restarts explain "30 2 * * *" --time-zone Europe/Berlin --from 2027-03-26
  kubectl tide restarts explain @weekly
  kubectl tide restarts explain deployment/web -n shop`,
		Args:              aSchedule,
		ValidArgsFunction: cobra.FixedCompletions([]string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly"}, cobra.ShellCompDirectiveNoFileComp),
		RunE:              cmdutil.RunE(o),
	}
	cmd.Flags().StringVar(&o.zone, "time-zone", "", "IANA name of the time `ZONE`, such as Europe/Berlin (default UTC)")
	cmd.Flags().StringVar(&o.from, "from", "", "the `TIME` to begin at, such as 2027-03-26, 2027-03-26T12:00 or with an offset (default now)")
	cmd.Flags().IntVar(&o.count, "count", 10, "number of ticks to list")
	options.SetRange(cmd.Flags(), "count", options.Between(1, mostTicks))
	return cmd
}

// aSchedule rejects a command line without arguments.
func aSchedule(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf(`%s requires a schedule, such as "0 3 * * *"`, cmd.CommandPath())
	}
	return nil
}

// Complete implements [cmdutil.Options]. An unquoted schedule arrives as five arguments, one for
// each cron field.
func (o *explainOptions) Complete(_ *cobra.Command, args []string) (err error) {
	if len(args) == 1 && strings.Contains(args[0], "/") {
		if refs, err := parseReferences(args); err == nil {
			o.ref = &refs[0]
			if o.zone != "" || o.from != "" {
				return fmt.Errorf("--time-zone and --from require a schedule: the schedule of %s has its own time zone, and its ticks are listed from now on", args[0])
			}
			return nil
		}
	}
	if o.schedule, err = schedule.Parse(strings.Join(args, " "), o.zone); err != nil {
		return err
	}
	o.after = o.Now()
	if o.from == "" {
		return nil
	}
	o.after, err = parseTime(o.from, o.schedule.Location())
	o.after = o.after.Add(-time.Nanosecond) // The search only finds ticks after o.after, but a tick exactly at --from must be included.
	return err
}

// Validate implements [cmdutil.Options].
func (o *explainOptions) Validate() error {
	if o.count < 1 || o.count > mostTicks {
		return fmt.Errorf("--count %d: write 1 to %d", o.count, mostTicks)
	}
	return nil
}

// Run implements [cmdutil.Options].
func (o *explainOptions) Run(ctx context.Context) error {
	if o.ref != nil {
		return o.explainRestart(ctx)
	}
	explained := view.Explain(o.schedule, o.after, o.count)
	fmt.Fprintf(o.Console.Out, "%s (%s)\n\n", explained.Words, explained.Zone)
	return o.Console.Write(explainTable(explained.Ticks))
}

// parseTime parses a date or a time. If the string contains no UTC offset, it is in the time zone
// `in`. If a clock change repeats the local time, parseTime returns the earlier instant, as
// schedules with a fixed time do.
func parseTime(text string, in *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if wall, err := time.Parse(layout, text); err == nil {
			return schedule.FirstInstant(in, wall), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write 2027-03-26, 2027-03-26T12:00 or 2027-03-26T12:00:00+01:00", text)
}

// explainTable returns a table with a row for each tick (scheduled time).
func explainTable(ticks []view.Tick) *term.Table {
	t := &term.Table{Columns: []term.Column{{Header: "TICK"}, {Header: "UTC", Drop: 1}, {Header: "CLOCK", Text: 20}}}
	for _, tick := range ticks {
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(tick.Time.Format("Mon 2 Jan 2006 15:04 MST")), term.Text(tick.Time.UTC().Format(time.RFC3339)), term.Painted(term.Yellow, tick.ClockChange),
		})
	}
	return t
}
