// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// longestCalendar is the maximum period of a calendar of future starts. It limits the number of
// computed ticks (scheduled times): a schedule that ticks every minute has half a million ticks per
// year.
const longestCalendar = 31 * 24 * time.Hour

// nextOptions holds the flags of restarts next.
type nextOptions struct {
	*cmdutil.Env
	allNamespaces bool
	ahead         cmdutil.Duration
	contexts      cmdutil.Contexts
	output        cmdutil.DataOutput

	namespace string
}

func newNextCommand(e *cmdutil.Env) *cobra.Command {
	o := &nextOptions{Env: e, ahead: cmdutil.Duration{Duration: 24 * time.Hour, Max: longestCalendar}}
	cmd := &cobra.Command{
		Use:   "next",
		Short: "The calendar of coming restarts, minute by minute",
		Long: `next shows when restarts will start, and how many start in the same minute. Like restarts
forecast, it considers Freezes, windows, the state of the workloads and the manager's budget.
A tick that will not start a restart is shown in the minute in which it is due, with the
reason, and does not count towards STARTS. Offsets of spread schedules are included. Schedules
that are suspended, stopped after failures or invalid are left out. Times are on the clock of
this machine.

With more than 100,000 starts, the calendar is computed from schedules and windows alone, and
a note says so. The first 100,000 starts are listed by name, the rest are only counted.

With --contexts it is the calendar of several clusters, in the namespace of each context or
of -n. STARTS is the number of starts in all clusters, and HERE the number in this cluster. A
cluster that does not answer within ten seconds, or --request-timeout, has a line with the
reason, and the exit code is 1.`,
		Example: `  kubectl tide restarts next
  kubectl tide restarts next --for 7d -A
  kubectl tide restarts next -A --contexts prod,edge`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show restarts in all namespaces")
	cmd.Flags().Var(&o.ahead, "for", "how far to look ahead, such as 24h or 7d; at most 31d")
	o.contexts.AddTo(e, cmd)
	o.output.Shows([]view.Minute{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *nextOptions) Complete(cmd *cobra.Command, _ []string) (err error) {
	if err := o.contexts.Complete(o.Env, cmd); err != nil || o.contexts.Given() {
		return err
	}
	o.namespace, err = o.Kubeconfig.Namespace(o.allNamespaces)
	return err
}

// Validate implements [cmdutil.Options].
func (o *nextOptions) Validate() error {
	return o.output.Validate()
}

// Run implements [cmdutil.Options].
func (o *nextOptions) Run(ctx context.Context) error {
	if o.contexts.Given() {
		return o.runContexts(ctx)
	}
	now := o.Now()
	read, calendar, err := o.calendar(ctx)
	if err != nil {
		return err
	}
	defer o.NoteManager(read.manager, read.unobserved, cmdutil.ThenWaits)
	o.note(&calendar)
	if done, err := o.output.Print(o.Console.Out, calendar.Minutes); done {
		return err
	}
	if len(calendar.Minutes) == 0 {
		o.nothingStarts()
		return nil
	}
	return o.Console.Write(calendarTable(calendar, o.allNamespaces, now, o.Local, o.Console.Screen))
}

// calendar reads the state of a cluster, and computes the calendar of future starts.
func (o *nextOptions) calendar(ctx context.Context) (*world, view.Calendar, error) {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return nil, view.Calendar{}, err
	}
	read := newWorld(o.Env, c, o.namespace)
	if err := read.readRestarts(ctx); err != nil {
		return nil, view.Calendar{}, err
	}
	now, until := o.Now(), o.Now().Add(o.ahead.Duration)
	all, shown := view.NewPlanner(now, until), view.NewPlanner(now, until)
	offsets, underWay := map[string]time.Duration{}, map[string]time.Time{}
	for _, r := range read.restarts {
		if all.Add(r); o.namespace == "" || r.Namespace == o.namespace {
			shown.Add(r)
		}
		offsets[r.Namespace+"/"+r.Name] = view.OffsetOf(r)
		if active := r.Status.Active; active != nil {
			underWay[r.Namespace+"/"+r.Name] = active.ScheduledTime.UTC()
		}
	}
	if all.Count(ctx) > view.MostListed {
		o.Console.Note(fmt.Sprintf("note: there are more than %d starts: computed from schedules and windows alone, without Freezes, the budget and the state of the workloads", view.MostListed))
		calendar := shown.Calendar(ctx, view.MostListed)
		return read, calendar, ctx.Err()
	}
	if err := read.readRest(ctx); err != nil {
		return nil, view.Calendar{}, err
	}
	f, err := read.forecast(ctx, view.SettingsOf(read.manager.Published), assumedDuration, until)
	return read, view.CalendarOf(&f, offsets, underWay), err
}

// note prints notes to stderr about the ScheduledRestarts that the calendar omits, the number of
// starts that it does not list by name, and the restarts in progress.
func (o *nextOptions) note(calendar *view.Calendar) {
	for _, problem := range calendar.Problems {
		o.Console.Note("left out: " + problem)
	}
	if calendar.Unlisted > 0 {
		o.Console.Note(fmt.Sprintf("%d more starts are counted and not listed by name: choose a namespace, or a shorter time with --for", calendar.Unlisted))
	}
	if len(calendar.UnderWay) > 0 {
		o.Console.Note("under way: " + startNames(view.Minute{Starts: calendar.UnderWay}, o.allNamespaces))
	}
}

func (o *nextOptions) nothingStarts() {
	fmt.Fprintf(o.Console.ErrOut, "No restart will start within %s.\n", o.ahead.String())
}

// calendarTable returns a table with a row for each minute of the calendar. The parameter
// namespaces adds the namespaces to the names of the ScheduledRestarts.
func calendarTable(c view.Calendar, namespaces bool, now time.Time, local *time.Location, s term.Screen) *term.Table {
	t := newMinuteTable(mostStarts(c), now, local, s, term.Column{Header: "RESTARTS", Text: 8})
	for _, m := range c.Minutes {
		t.add(m.Time, m.Count, term.Text(startNames(m, namespaces)))
	}
	return &t.Table
}

// mostStarts returns the largest number of starts in a minute of the calendar.
func mostStarts(c view.Calendar) int {
	greatest := 0
	for _, m := range c.Minutes {
		greatest = max(greatest, m.Count)
	}
	return greatest
}

// startNames names the restarts that start in a minute, and the restarts that are due in the minute
// but do not start. It adds the namespaces if namespaces is set.
func startNames(m view.Minute, namespaces bool) string {
	var names []string
	if len(m.Starts) < m.Count {
		names = append(names, "not listed")
	}
	for _, start := range slices.Concat(m.Starts, m.NotStarted) {
		name := start.Name
		if namespaces {
			name = start.Namespace + "/" + name
		}
		if start.OffsetSeconds > 0 {
			name += " +" + (time.Duration(start.OffsetSeconds) * time.Second).String()
		}
		switch {
		case start.Outcome != "":
			name += " (" + string(start.Outcome) + ": " + start.Reason + ")"
		case delayed(&start):
			name += " (tick " + start.Tick.UTC().Format(time.RFC3339) + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// delayed reports whether a restart starts in a later minute than the minute in which it is due.
func delayed(s *view.Start) bool {
	due := s.Tick.Add(time.Duration(s.OffsetSeconds) * time.Second)
	return s.Start.Truncate(time.Minute).After(due)
}
