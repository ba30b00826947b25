// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Listing implements the common flags and output of the commands that list Tidekeeper's objects.
type Listing struct {
	*Env
	// Kind is the kind of the listed objects. Plural is the plural of the kind, for messages. Empty
	// returns an empty list of the kind.
	Kind, Plural string
	Empty        func() client.ObjectList
	// Controller is the name of the kind's controller if that controller is off by default. Then
	// describes the consequence if the leader does not run the controller. Both are "" if the
	// kind's controller is on by default.
	Controller, Then string

	LabelSelector string
	Selector      labels.Selector
	// Filtered is set if the list may exclude some objects because of a label selector or another
	// filter.
	Filtered bool
	Watch    bool
	Contexts Contexts
	Output   ObjectOutput
}

// AddTo adds the flags of a listing to cmd. selected is the help text of the flag -l.
func (l *Listing) AddTo(cmd *cobra.Command, selected string) {
	cmd.Flags().StringVarP(&l.LabelSelector, "selector", "l", "", selected)
	cmd.Flags().BoolVarP(&l.Watch, "watch", "w", false, "after listing, print a line for each change")
	l.Contexts.AddTo(l.Env, cmd)
	l.Output.AddTo(cmd)
}

// CompleteFlags parses the label selector, and checks --contexts.
func (l *Listing) CompleteFlags(cmd *cobra.Command) (err error) {
	if l.Selector, err = labels.Parse(l.LabelSelector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	l.Filtered = !l.Selector.Empty()
	return l.Contexts.Complete(l.Env, cmd)
}

// ValidateFlags rejects output formats that the command does not support.
func (l *Listing) ValidateFlags() error {
	if err := l.Output.Validate(); err != nil || !l.Contexts.Given() {
		return err
	}
	return l.Output.ValidateContexts()
}

// Print prints the table t and, with -w, a line for each later change. unobserved counts the listed
// objects that no manager has observed, so that their status may be outdated. The caller must set
// the fields Namespace, List, Options and Table of `changes`.
func (l *Listing) Print(ctx context.Context, c client.Client, t *term.Table, unobserved view.Unobserved, changes *Follower) error {
	layout := t.Layout(l.Console.Screen, nil)
	if len(t.Rows) == 0 {
		l.Console.NothingFound(l.Plural, changes.Namespace, l.Filtered)
	} else if err := t.WriteLayout(l.Console.Out, l.Console.Screen, layout); err != nil {
		return err
	}
	if err := l.NoteManagers(ctx, l.Env, c, len(t.Rows), unobserved); err != nil || !l.Watch {
		return err
	}
	changes.Kind, changes.Empty, changes.Layout = l.Kind, l.Empty, layout
	return l.Follow(ctx, changes)
}

// NoteManagers prints a note to stderr if the status of the listed objects may be outdated, because
// no manager leads or because the leader does not run the kind's controller. objects is the number
// of listed objects. If it is 0, the note does not mention a missing controller.
func (l *Listing) NoteManagers(ctx context.Context, e *Env, c client.Client, objects int, unobserved view.Unobserved) error {
	m, err := ManagerIfAllowed(ctx, e, c)
	if err != nil {
		return err
	}
	e.NoteManager(m, unobserved, ThenOutdated)
	if l.Controller != "" && objects > 0 {
		e.NoteController(m, l.Controller, l.Then)
	}
	return nil
}

// Clusters defines how a command lists the objects of several clusters. T is the result of reading
// one cluster. I is an object together with additional data that the table shows.
type Clusters[T, I any] struct {
	// Read reads a cluster's objects. Items converts the result to a slice, and List to a list
	// object.
	Read  func(context.Context, *Env) (T, error)
	Items func(T) []I
	List  func(T) client.ObjectList
	// Object returns the API object of an item. Fields returns the fields of an item to print as
	// JSON or YAML.
	Object func(*I) runtime.Object
	Fields func(*I) (map[string]any, error)
	// Table returns the table of all objects. It is called after all clusters have been read or
	// have failed.
	Table func(answers []Answer[T], rows []Located[I], now time.Time) *term.Table
	// Changes returns the Follower that implements -w for a cluster, and a function that converts a
	// changed API object to an item of the table.
	Changes func(ctx context.Context, answers []Answer[T], of Answer[T]) (*Follower, func(client.Object) I, error)
}

// Print reads all clusters and prints their objects as one list.
func (c *Clusters[T, I]) Print(ctx context.Context, l *Listing) error {
	answers, err := AskContexts(ctx, l.Env, l.Contexts.Names, c.Read)
	if err != nil {
		return err
	}
	rows, problems := Locate(answers, c.Items), ProblemsOf(answers)
	if err := SortLocated(&l.Output, rows, c.Object); err != nil {
		return err
	}
	if !l.Output.IsTable() {
		list := tidekeeperv1.SchemeGroupVersion.WithKind(l.Kind + "List")
		if err := PrintLocated(&l.Output, l.Console.Out, list, rows, problems, c.Fields); err != nil {
			return err
		}
		return Unanswered(problems)
	}
	table := func(rows []Located[I], now time.Time) *term.Table {
		t := c.Table(answers, rows, now)
		AddContexts(t, rows)
		return t
	}
	t := table(rows, l.Now())
	nothing := "no " + l.Plural
	if l.Filtered {
		nothing += " that match"
	}
	AddOthers(t, answers, rows, nothing)
	layout := t.Layout(l.Console.Screen, nil)
	if err := t.WriteLayout(l.Console.Out, l.Console.Screen, layout); err != nil {
		return err
	}
	if !l.Watch {
		return Unanswered(problems)
	}
	followers := make([]*Follower, len(answers))
	for i, a := range answers {
		f, item, err := c.Changes(ctx, answers, a)
		if err != nil {
			return err
		}
		if f.Context, f.Kind, f.Empty, f.Layout = a.Context, l.Kind, l.Empty, layout; a.Problem == "" {
			f.List = c.List(a.Value)
		}
		f.Table = func(object client.Object, now time.Time) *term.Table {
			return table([]Located[I]{{Context: a.Context, Value: item(object)}}, now)
		}
		followers[i] = f
	}
	return l.FollowContexts(ctx, followers)
}
