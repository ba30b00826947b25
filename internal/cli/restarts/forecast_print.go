// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"fmt"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// print prints a forecast in the format of -o. By default, it prints tables, a summary and the
// assumptions. partial is set if the forecast excludes restarts in other namespaces.
func (o *forecastOptions) print(f forecast.Forecast, partial bool) error {
	for _, problem := range f.Problems {
		o.Console.Note("left out: " + problem)
	}
	if n := f.Summary.Unlisted; n > 0 {
		o.Console.Note(fmt.Sprintf("%d more ticks are counted and not listed by name: choose a namespace, or a shorter time with --for", n))
	}
	if text := hangingText(f.Hanging); text != "" {
		o.Console.Note("note: " + text)
	}
	if n := f.ClosedByQuery; n > 0 {
		o.Console.Note(fmt.Sprintf("waiting for a query of the manager's operator now: %s; the results of queries are not known, and are assumed to hold nothing back", term.Plural(n, "restart")))
	}
	settings := forecastSettings{o.settings.MaxConcurrent, o.settings.NamespaceShare, int64(o.settings.SlotAge / time.Second), int64(o.assume.Duration / time.Second)}
	defaults := append([]string{}, o.settings.Assumed...)
	if done, err := o.output.Print(o.Console.Out, forecastOutput{f, settings, defaults, partial}); done {
		return err
	}
	if len(f.Minutes) > 0 {
		if err := o.Console.Write(forecastTable(&f, o.allNamespaces, o.Local, o.Console.Screen)); err != nil {
			return err
		}
		fmt.Fprintln(o.Console.Out)
	}
	if unserved := view.UnservedIn(&f); len(unserved) > 0 {
		if err := o.Console.Write(unservedTable(unserved, o.allNamespaces, f.From, o.Local)); err != nil {
			return err
		}
		fmt.Fprintln(o.Console.Out)
	}
	fmt.Fprintln(o.Console.Out, summaryText(&f, o.Local))
	fmt.Fprintln(o.Console.Out, o.assumedText(&f))
	return nil
}

// mostHanging is the maximum number of hanging rollouts that a note names.
const mostHanging = 3

// hangingText describes the rollouts that make no progress, and names the first mostHanging. It
// returns "" if there is no such rollout.
func hangingText(all []forecast.Hanging) string {
	var named []string
	for _, h := range all[:min(len(all), mostHanging)] {
		named = append(named, fmt.Sprintf("%s of %s (%s)", h.Target, h.Namespace, h.Message))
	}
	switch more := len(all) - mostHanging; {
	case len(all) == 0:
		return ""
	case more > 0:
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s without progress, assumed to stay so: %s", term.Plural(len(all), "rollout"), strings.Join(named, ", "))
}

// forecastTable returns a table with a row for each minute in which restarts start. The parameter
// namespaces adds the namespaces to the names of the ScheduledRestarts.
func forecastTable(f *forecast.Forecast, namespaces bool, local *time.Location, s term.Screen) *term.Table {
	greatest := 0
	for _, m := range f.Minutes {
		greatest = max(greatest, m.Started)
	}
	t := newMinuteTable(greatest, f.From, local, s, term.Column{Header: "WAITING"}, term.Column{Header: "RESTARTS", Text: 8})
	started := f.Started
	for _, m := range f.Minutes {
		n := 0
		for n < len(started) && started[n].Start.Before(m.Time.Add(time.Minute)) {
			n++
		}
		names := tickNames(started[:n], namespaces, f.From)
		if n < m.Started {
			names = "not listed"
		}
		started = started[n:]
		t.add(m.Time, m.Started, term.Text(fmt.Sprint(m.Waiting)), term.Text(names))
	}
	return &t.Table
}

// tickNames lists the ScheduledRestarts of the given ticks (scheduled times) by name, with the
// namespace if namespaces is set.
func tickNames(ticks []forecast.Tick, namespaces bool, now time.Time) string {
	names := make([]string, 0, len(ticks))
	for _, t := range ticks {
		name := t.Name
		if namespaces {
			name = t.Namespace + "/" + name
		}
		if !t.Start.IsZero() && t.Start.Before(now) {
			name += " (in progress)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// unservedTable returns a table of the ticks (scheduled times) that do not lead to a successful
// restart, grouped by ScheduledRestart and reason. The parameter namespaces adds the namespaces to
// the names of the ScheduledRestarts.
func unservedTable(all []view.Unserved, namespaces bool, now time.Time, local *time.Location) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "TICK (" + term.Zone(now, local) + ")"}, {Header: "LAST", Drop: 1}, {Header: "TICKS"}, {Header: "OUTCOME"}, {Header: "MESSAGE", Text: 20}, {Header: "RESTARTS", Text: 8},
	}}
	for _, u := range all {
		message := u.Message
		if !u.Alike {
			message += "; and others"
		}
		last := "-"
		if u.Last.After(u.First) {
			last = term.Moment(u.Last, now, local)
		}
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(term.Moment(u.First, now, local)), term.Text(last), term.Text(u.CountText()),
			term.Painted(cmdutil.ColorOf(u.Outcome.Severity), u.Outcome.Text),
			term.Text(message), term.Text(tickNames(u.Restarts, namespaces, now)),
		})
	}
	return t
}

// summaryText states the number of ticks (scheduled times) with each outcome in a forecast.
func summaryText(f *forecast.Forecast, local *time.Location) string {
	s := f.Summary
	moment := func(t time.Time) string { return term.Moment(t, f.From, local) }
	said := []string{fmt.Sprintf("No restart will start until %s.", moment(f.Until))}
	switch {
	case s.Started > 0 && s.LastCompletion.IsZero():
		said[0] = fmt.Sprintf("%s, from %s on.", term.Plural(s.Started, "restart"), moment(s.FirstStart))
	case s.Started > 0:
		said[0] = fmt.Sprintf("%s, from %s until %s: %s.", term.Plural(s.Started, "restart"), moment(s.FirstStart), moment(s.LastCompletion),
			term.Between(s.FirstStart, s.LastCompletion))
	}
	if s.Missed == 0 {
		said = append(said, "Nothing will be missed.")
	}
	for _, more := range []struct {
		n          int
		noun, text string
	}{
		{s.Missed, "tick", "will be missed"}, {s.Skipped, "tick", "will be skipped"}, {s.Failed, "restart", "will fail"},
		{s.InProgress, "restart", "in progress at the end"}, {s.Waiting, "tick", "waiting at the end"},
	} {
		if more.n > 0 {
			said = append(said, term.Plural(more.n, more.noun)+" "+more.text+".")
		}
	}
	return strings.Join(said, " ")
}

// assumedText lists the assumptions of the forecast.
func (o *forecastOptions) assumedText(f *forecast.Forecast) string {
	var said []string
	if text := o.settings.AssumedText(o.settings.Assumed...); text != "" {
		said = append(said, text)
	}
	if f.Summary.Assumed > 0 {
		said = append(said, fmt.Sprintf("%s for %s without a success in the history (--assume-duration)", o.assume.String(), term.Plural(f.Summary.Assumed, "restart")))
	}
	if len(said) == 0 {
		return "Assumed: workloads stay as they are."
	}
	return "Assumed: workloads stay as they are, " + strings.Join(said, ", ") + "."
}
