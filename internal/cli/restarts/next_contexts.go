// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// clusterCalendar is the calendar of future starts in a cluster, and the namespace that it covers.
type clusterCalendar struct {
	view.Calendar
	namespace string // "" for all namespaces
}

// runContexts prints a joint calendar of future starts in several clusters.
func (o *nextOptions) runContexts(ctx context.Context) error {
	now := o.Now()
	answers, err := cmdutil.AskContexts(ctx, o.Env, o.contexts.Names, func(ctx context.Context, e *cmdutil.Env) (read clusterCalendar, err error) {
		one := *o
		one.Env = e
		if one.namespace, err = e.Kubeconfig.Namespace(o.allNamespaces); err != nil {
			return read, err
		}
		read.namespace = one.namespace
		world, calendar, err := one.calendar(ctx)
		if err != nil {
			return read, err
		}
		one.NoteManager(world.manager, world.unobserved, cmdutil.ThenWaits)
		read.Calendar = calendar
		return read, nil
	})
	if err != nil {
		return err
	}
	calendar, namespaces, problems := view.Calendar{Minutes: []view.Minute{}}, map[string]bool{}, cmdutil.ProblemsOf(answers)
	for _, a := range answers {
		if a.Problem == "" {
			calendar.Join(a.Context, a.Value.Calendar)
			namespaces[a.Value.namespace] = true
		}
	}
	o.note(&calendar)
	done, err := o.output.Print(o.Console.Out, calendar.Minutes)
	if err != nil {
		return err
	}
	if !done {
		if len(calendar.Minutes) == 0 && len(problems) < len(answers) {
			o.nothingStarts()
		}
		if t := o.contextsTable(calendar, o.allNamespaces || len(namespaces) > 1, problems, now); len(t.Rows) > 0 {
			if err := o.Console.Write(t); err != nil {
				return err
			}
		}
	}
	return cmdutil.Unanswered(problems)
}

// contextsTable returns the joint calendar of several clusters as a table. It has a row for each
// minute and each cluster with starts in this minute, and a row with the error for each cluster
// that could not be read. The parameter namespaces adds the namespaces to the names of the
// ScheduledRestarts.
func (o *nextOptions) contextsTable(c view.Calendar, namespaces bool, problems []cmdutil.Problem, now time.Time) *term.Table {
	t := newMinuteTable(mostStarts(c), now, o.Local, o.Console.Screen, term.Column{Header: "CONTEXT", Name: true}, term.Column{Header: "HERE"}, term.Column{Header: "RESTARTS", Text: 8})
	ofMinute := len(t.Columns) - 3 // The last three columns differ between clusters.
	for _, m := range c.Minutes {
		if len(m.Starts) < m.Count {
			t.add(m.Time, m.Count, term.Text("-"), term.Text("-"), term.Text(startNames(m, namespaces)))
		}
		again := false
		for _, name := range o.contexts.Names {
			here := m.Of(name)
			if here.Count == 0 && len(here.NotStarted) == 0 {
				continue
			}
			t.add(m.Time, m.Count, term.Text(name), term.Text(fmt.Sprint(here.Count)), term.Text(startNames(here, namespaces)))
			if again && t.terminal {
				clear(t.Rows[len(t.Rows)-1][:ofMinute])
			}
			again = true
		}
	}
	for _, p := range problems {
		row := make([]term.Cell, ofMinute, ofMinute+2)
		t.Rows = append(t.Rows, append(row, term.Text(p.Context), term.Cell{Text: p.Error, Color: term.Red, Span: true}))
	}
	return &t.Table
}
