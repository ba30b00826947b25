// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/cli/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// longestCalendar bounds what is computed: a year of every minute is half a
// million ticks for each ScheduledRestart.
const longestCalendar = 31 * 24 * time.Hour

// nextOptions are those of restarts next.
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
		Short: "The calendar of the coming restarts, minute by minute",
		Long: `next shows when restarts will start, and how many start in the same minute. The
place of each in its spread is included. Schedules that are suspended, stopped
after failures or invalid are left out. The first 100,000 starts are listed by
name, those after them are only counted. Times are on the clock of this machine.

With --contexts it is the calendar of several clusters, which are asked at once, in the
namespace of each context, or that of -n. STARTS is how many start in all of them, and HERE
in one. A cluster that does not answer within ten seconds, or --request-timeout, has a line
that says why, and the exit code is 1.`,
		Example: `  kubectl tide restarts next
  kubectl tide restarts next --for 7d -A
  kubectl tide restarts next -A --contexts prod,edge`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "those of all namespaces")
	cmd.Flags().Var(&o.ahead, "for", "how far to look ahead, such as 24h or 7d; at most 31d")
	o.contexts.AddTo(e, cmd)
	o.output.AddTo(cmd)
	return cmd
}

// Complete is part of [cmdutil.Options].
func (o *nextOptions) Complete(cmd *cobra.Command, _ []string) (err error) {
	if err := o.contexts.Complete(o.Env, cmd); err != nil || o.contexts.Given() {
		return err
	}
	o.namespace, err = o.Namespace(o.allNamespaces)
	return err
}

// Validate is part of [cmdutil.Options].
func (o *nextOptions) Validate() error {
	return o.output.Validate()
}

// Run is part of [cmdutil.Options].
func (o *nextOptions) Run(ctx context.Context) error {
	if o.contexts.Given() {
		return o.runContexts(ctx)
	}
	now := o.Now()
	planner := view.NewPlanner(now, now.Add(o.ahead.Duration))
	if err := o.eachRestart(ctx, planner.Add); err != nil {
		return err
	}
	calendar, err := o.calendar(ctx, planner)
	if err != nil {
		return err
	}
	if done, err := o.output.Print(o.Out, calendar.Minutes); done {
		return err
	}
	if len(calendar.Minutes) == 0 {
		o.nothingStarts()
		return nil
	}
	return o.Write(calendarTable(calendar, o.allNamespaces, now, o.Local, o.Screen))
}

// calendar returns what a planner has planned, and notes what is not in it.
func (o *nextOptions) calendar(ctx context.Context, planner *view.Planner) (view.Calendar, error) {
	calendar := planner.Calendar(ctx, view.MostListed)
	if err := ctx.Err(); err != nil {
		return calendar, err
	}
	for _, problem := range calendar.Problems {
		o.Note("left out: " + problem)
	}
	if calendar.Unlisted > 0 {
		o.Note(fmt.Sprintf("%d more starts are counted and not listed by name: choose a namespace, or look less far ahead with --for", calendar.Unlisted))
	}
	return calendar, nil
}

func (o *nextOptions) nothingStarts() {
	fmt.Fprintf(o.ErrOut, "No restart will start within %s.\n", o.ahead.String())
}

// eachRestart reads the ScheduledRestarts a page at a time.
func (o *nextOptions) eachRestart(ctx context.Context, read func(*tidekeeperv1.ScheduledRestart)) error {
	c, err := o.Client()
	if err != nil {
		return err
	}
	err = cmdutil.EachPage(ctx, c, func() *tidekeeperv1.ScheduledRestartList { return &tidekeeperv1.ScheduledRestartList{} }, func(page *tidekeeperv1.ScheduledRestartList) {
		for i := range page.Items {
			read(&page.Items[i])
		}
	}, client.InNamespace(o.namespace))
	return cmdutil.AboutKind(err, restartKind.Name, o.namespace, "")
}

// calendarTable is the calendar for people.
func calendarTable(c view.Calendar, namespaces bool, now time.Time, local *time.Location, s term.Screen) *term.Table {
	t := newMinuteTable(mostStarts(c), now, local, s, term.Column{Header: "RESTARTS", Text: 8})
	for _, m := range c.Minutes {
		t.add(m.Time, m.Count, term.Text(startNames(m, namespaces)))
	}
	return &t.Table
}

// mostStarts is how many restarts start in the same minute at most.
func mostStarts(c view.Calendar) int {
	greatest := 0
	for _, m := range c.Minutes {
		greatest = max(greatest, m.Count)
	}
	return greatest
}

// startNames lists what starts in a minute.
func startNames(m view.Minute, namespaces bool) string {
	if len(m.Starts) == 0 {
		return "not listed"
	}
	var names []string
	for _, start := range m.Starts {
		name := start.Name
		if namespaces {
			name = start.Namespace + "/" + name
		}
		if start.OffsetSeconds > 0 {
			name += " +" + (time.Duration(start.OffsetSeconds) * time.Second).String()
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
