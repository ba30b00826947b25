// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restarts is kubectl tide restarts.
//
//   - command.go: the commands, and what they read
//   - list.go: the list, and how it changes
//   - contexts.go, next_contexts.go: the list and the calendar of several clusters
//   - history.go: what became of the ticks of one
//   - next.go: the calendar
//   - list_looks.go: what Freezes and the workloads do to what is listed
//   - forecast.go, forecast_print.go: what starts when, and what will be missed
//   - world.go: what is read before it is said what comes
//   - gates.go, gates_read.go: whether a restart would be started now
//   - budget_flags.go: the manager's settings that forecast and gates are given
//   - pod_ages.go: how old the pods are
//   - minutes.go: the table of the minutes in which something starts
//   - targets.go: the objects that now, suspend and resume are about
//   - actions.go: what the page does to one
//   - now.go, asker.go, suspend.go, failures.go, patch.go, actions.go: what changes a ScheduledRestart
//   - explain.go, explain_restart.go: a schedule in words, and what comes of its ticks
package restarts

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// restartKind is the kind as people name it.
var restartKind = cmdutil.Kind{
	Name: "ScheduledRestart", Group: tidekeeperv1.SchemeGroupVersion.Group, Resources: []string{"scheduledrestart", "scheduledrestarts", "srestart", "eru", "erus"},
}

func emptyList() client.ObjectList { return &tidekeeperv1.ScheduledRestartList{} }

// NewCommand returns the command restarts, which lists them, with those below it.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	cmd := newListCommand(e)
	cmd.AddCommand(newHistoryCommand(e), newNextCommand(e), newGatesCommand(e), newForecastCommand(e), newNowCommand(e), newSuspendCommand(e), newResumeCommand(e), newExplainCommand(e))
	return cmd
}

// getRestart reads a ScheduledRestart, with its kind, which a client leaves out.
func getRestart(ctx context.Context, c client.Client, namespace, name string) (*tidekeeperv1.ScheduledRestart, error) {
	r := &tidekeeperv1.ScheduledRestart{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, r); err != nil {
		return nil, cmdutil.AboutKind(err, restartKind.Name, namespace, name)
	}
	r.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind.Name))
	return r, nil
}

// listRestarts reads ScheduledRestarts, with their kind.
func listRestarts(ctx context.Context, c client.Client, options ...client.ListOption) (*tidekeeperv1.ScheduledRestartList, error) {
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	nameKinds(list)
	return list, nil
}

// listShown reads of ScheduledRestarts what a table shows.
func listShown(ctx context.Context, c client.Client, options ...client.ListOption) (list *tidekeeperv1.ScheduledRestartList, err error) {
	list = &tidekeeperv1.ScheduledRestartList{}
	if list.ResourceVersion, err = cmdutil.EachRestart(ctx, c, func(r *tidekeeperv1.ScheduledRestart) { list.Items = append(list.Items, *r) }, options...); err != nil {
		return nil, err
	}
	nameKinds(list)
	return list, nil
}

// nameKinds says of which kind a list and its objects are.
func nameKinds(list *tidekeeperv1.ScheduledRestartList) {
	list.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind.Name + "List"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind.Name))
	}
}
