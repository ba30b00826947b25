// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restarts implements kubectl tide restarts.
//
//	command.go                      the command and its subcommands; reading ScheduledRestarts
//	list.go                         the list of ScheduledRestarts, and following its changes
//	list_looks.go                   how Freezes and workloads affect the listed restarts
//	contexts.go, next_contexts.go   the list and the calendar for several clusters
//	history.go                      the outcomes of past ticks
//	next.go                         the calendar of future starts
//	forecast.go, forecast_print.go  the simulation of the restart budget
//	world.go                        reading the cluster state that list, next, forecast and explain
//	                                depend on
//	gates.go, gates_read.go         the gates that determine whether a restart would start now
//	budget_flags.go                 flags of gates and forecast for the manager's restart budget
//	pod_ages.go                     the age of each workload's oldest pod
//	minutes.go                      a table with a row for each minute with starts
//	targets.go                      selecting ScheduledRestarts by name, workload or label
//	now.go, asker.go, now_wait.go   requesting a restart, and waiting for its outcome
//	suspend.go, failures.go         suspending and resuming a schedule
//	patch.go                        patching a ScheduledRestart
//	actions.go                      now, suspend and resume for the dashboard
//	explain.go, explain_restart.go  a schedule in words, with its next ticks' outcomes
package restarts

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// restartKind lists the names by which the command line refers to ScheduledRestarts.
var restartKind = cmdutil.Kind{
	Name: "ScheduledRestart", Group: tidekeeperv1.SchemeGroupVersion.Group, Resources: []string{"scheduledrestart", "scheduledrestarts", "srestart", "eru", "erus"},
}

func emptyList() client.ObjectList { return &tidekeeperv1.ScheduledRestartList{} }

// NewCommand returns the command restarts and its subcommands. Without a subcommand, it lists
// ScheduledRestarts.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	cmd := newListCommand(e)
	cmd.AddCommand(newHistoryCommand(e), newNextCommand(e), newGatesCommand(e), newForecastCommand(e), newNowCommand(e), newSuspendCommand(e), newResumeCommand(e), newExplainCommand(e))
	return cmd
}

// getRestart reads a complete ScheduledRestart. It sets the object's kind, which the client leaves
// empty.
func getRestart(ctx context.Context, c client.Client, namespace, name string) (*tidekeeperv1.ScheduledRestart, error) {
	r := &tidekeeperv1.ScheduledRestart{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, r); err != nil {
		return nil, cmdutil.AboutKind(err, restartKind.Name, namespace, name)
	}
	r.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(restartKind.Name))
	return r, nil
}

// listRestarts lists complete ScheduledRestarts. It sets the kind of the list and of its objects,
// which the client leaves empty.
func listRestarts(ctx context.Context, c client.Client, options ...client.ListOption) (*tidekeeperv1.ScheduledRestartList, error) {
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	cmdutil.SetKinds(list, restartKind.Name)
	return list, nil
}

// listShown reads ScheduledRestarts page by page, and keeps only the fields that the commands show.
func listShown(ctx context.Context, c client.Client, options ...client.ListOption) (list *tidekeeperv1.ScheduledRestartList, err error) {
	list = &tidekeeperv1.ScheduledRestartList{}
	if list.ResourceVersion, err = cmdutil.EachRestart(ctx, c, func(r *tidekeeperv1.ScheduledRestart) { list.Items = append(list.Items, *r) }, options...); err != nil {
		return nil, err
	}
	cmdutil.SetKinds(list, restartKind.Name)
	return list, nil
}
