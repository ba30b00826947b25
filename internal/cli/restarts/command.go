// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restarts is kubectl tide restarts.
//
//   - command.go: the command and its subcommands; reading ScheduledRestarts
//   - list.go: the list, and following its changes
//   - list_looks.go: the Freezes and the state of the workloads in the list
//   - contexts.go, next_contexts.go: the list and the calendar of several clusters
//   - history.go: the outcomes of past ticks
//   - next.go: the calendar of coming starts
//   - forecast.go, forecast_print.go: the simulation of the restart budget
//   - world.go: reading the cluster state that list, next, forecast and explain depend on
//   - gates.go, gates_read.go: whether a restart would be started now
//   - budget_flags.go: the flags of gates and forecast for the manager's restart budget
//   - pod_ages.go: the age of the oldest pod of each workload
//   - minutes.go: the table with a row for each minute with starts
//   - targets.go: selecting ScheduledRestarts by name, workload or label
//   - now.go, asker.go: requesting a restart
//   - suspend.go, failures.go: suspending and resuming a schedule
//   - patch.go: patching a ScheduledRestart
//   - actions.go: now, suspend and resume for the local page
//   - explain.go, explain_restart.go: a schedule in words, with the outcome of its next ticks
package restarts

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// restartKind has the names of the kind that a command line accepts.
var restartKind = cmdutil.Kind{
	Name: "ScheduledRestart", Group: tidekeeperv1.SchemeGroupVersion.Group, Resources: []string{"scheduledrestart", "scheduledrestarts", "srestart", "eru", "erus"},
}

func emptyList() client.ObjectList { return &tidekeeperv1.ScheduledRestartList{} }

// NewCommand returns the command restarts, which lists ScheduledRestarts, with its subcommands.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	cmd := newListCommand(e)
	cmd.AddCommand(newHistoryCommand(e), newNextCommand(e), newGatesCommand(e), newForecastCommand(e), newNowCommand(e), newSuspendCommand(e), newResumeCommand(e), newExplainCommand(e))
	return cmd
}

// getRestart reads a ScheduledRestart and sets its kind, which the client leaves empty.
func getRestart(ctx context.Context, c client.Client, namespace, name string) (*tidekeeperv1.ScheduledRestart, error) {
	r := &tidekeeperv1.ScheduledRestart{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, r); err != nil {
		return nil, cmdutil.AboutKind(err, restartKind.Name, namespace, name)
	}
	r.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind.Name))
	return r, nil
}

// listRestarts reads complete ScheduledRestarts and sets their kind.
func listRestarts(ctx context.Context, c client.Client, options ...client.ListOption) (*tidekeeperv1.ScheduledRestartList, error) {
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	nameKinds(list)
	return list, nil
}

// listShown reads ScheduledRestarts page by page and keeps only the fields that a table shows.
func listShown(ctx context.Context, c client.Client, options ...client.ListOption) (list *tidekeeperv1.ScheduledRestartList, err error) {
	list = &tidekeeperv1.ScheduledRestartList{}
	if list.ResourceVersion, err = cmdutil.EachRestart(ctx, c, func(r *tidekeeperv1.ScheduledRestart) { list.Items = append(list.Items, *r) }, options...); err != nil {
		return nil, err
	}
	nameKinds(list)
	return list, nil
}

// nameKinds sets the kind of a list and of its objects.
func nameKinds(list *tidekeeperv1.ScheduledRestartList) {
	list.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind.Name + "List"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind.Name))
	}
}
