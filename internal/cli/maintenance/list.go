// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// listOptions holds the flags and arguments of the command maintenance.
type listOptions struct {
	cmdutil.Listing

	cmd   *cobra.Command
	names []string
}

func newListCommand(e *cmdutil.Env) *cobra.Command {
	o := &listOptions{Listing: cmdutil.Listing{
		Env: e, Kind: maintenanceKind.Name, Plural: "maintenances", Empty: emptyList, Controller: ControllerName, Then: thenNotDrained,
	}}
	cmd := &cobra.Command{
		Use:        "maintenance [NAME...]",
		Aliases:    []string{"maint", "maintenances", "nodemaintenance", "nodemaintenances", "nmaint"},
		SuggestFor: []string{"drain", "reboot"},
		Short:      "Maintenance of nodes: rounds, progress of each node, forecast",
		Long: `maintenance lists NodeMaintenances: the status of each, and how many nodes of the current or
last round are done, running and failed. A running node is being drained, is drained, or is on
its way back into use. NEXT is when the schedule begins the next round.`,
		Example: `  kubectl tide maintenance
  kubectl tide maintenance -w
  kubectl tide maintenance describe reboot       # each node: what it waits for, and what to do
  kubectl tide maintenance forecast reboot       # when will it be through?
  kubectl tide maintenance done node-7           # its maintenance is over`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.AddTo(cmd, "only maintenances with these labels, such as team=infra")
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *listOptions) Complete(cmd *cobra.Command, args []string) (err error) {
	o.cmd = cmd
	if o.names, err = maintenanceKind.Names(args); err == nil {
		err = o.CompleteFlags(cmd)
	}
	return err
}

// Validate implements [cmdutil.Options].
func (o *listOptions) Validate() error {
	switch err := o.ValidateFlags(); {
	case err != nil:
		return err
	case len(o.names) > 0 && (o.LabelSelector != "" || o.Watch):
		return errors.New("-l and -w cannot be combined with names: kubectl tide maintenance -w follows all maintenances")
	case o.Watch && !o.Output.IsTable():
		return fmt.Errorf("-w only prints tables: kubectl get nodemaintenances -w -o %s follows the objects", o.Output.Format())
	}
	return nil
}

// Run implements [cmdutil.Options].
func (o *listOptions) Run(ctx context.Context) error {
	if o.Contexts.Given() {
		return o.clusters().Print(ctx, &o.Listing)
	}
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	list, err := o.list(ctx, c, o.cmd)
	if err != nil {
		return err
	}
	if err := o.Output.Sort(list); err != nil {
		return err
	}
	if !o.Output.IsTable() {
		return o.Output.Print(list, o.Console.Out)
	}
	return o.Print(ctx, c, o.table(list.Items, o.Now()), unobserved(list.Items, o.Now()), &cmdutil.Follower{
		List: list, Options: client.ListOptions{LabelSelector: o.Selector},
		Table: func(object client.Object, now time.Time) *term.Table {
			return o.table([]tidekeeperv1.NodeMaintenance{*object.(*tidekeeperv1.NodeMaintenance)}, now)
		},
	})
}

// list reads the selected NodeMaintenances. It returns an error if a named object does not exist.
// If the name resembles a subcommand of cmd, the error suggests that subcommand. cmd may be nil.
func (o *listOptions) list(ctx context.Context, c client.Client, cmd *cobra.Command) (*tidekeeperv1.NodeMaintenanceList, error) {
	list, err := listMaintenances(ctx, c, client.MatchingLabelsSelector{Selector: o.Selector})
	if err != nil || len(o.names) == 0 {
		return list, err
	}
	if list.Items, err = pick(list.Items, o.names); err != nil {
		return nil, cmdutil.MissingName(cmd, o.names[0], err)
	}
	return list, nil
}

// unobserved counts the NodeMaintenances whose latest change no manager has observed, so that their
// status may be outdated.
func unobserved(items []tidekeeperv1.NodeMaintenance, now time.Time) (unobserved view.Unobserved) {
	for i := range items {
		unobserved.Add(maintenanceKind.Name, &items[i], items[i].Status.ObservedGeneration, now)
	}
	return unobserved
}

// clusters defines how the command lists the NodeMaintenances of several clusters.
func (o *listOptions) clusters() *cmdutil.Clusters[*tidekeeperv1.NodeMaintenanceList, tidekeeperv1.NodeMaintenance] {
	type (
		list = *tidekeeperv1.NodeMaintenanceList
		item = tidekeeperv1.NodeMaintenance
	)
	return &cmdutil.Clusters[list, item]{
		Read:   o.readCluster,
		Items:  func(l list) []item { return l.Items },
		List:   func(l list) client.ObjectList { return l },
		Object: func(m *item) runtime.Object { return m },
		Fields: func(m *item) (map[string]any, error) {
			return runtime.DefaultUnstructuredConverter.ToUnstructured(m)
		},
		Table: func(_ []cmdutil.Answer[list], rows []cmdutil.Located[item], now time.Time) *term.Table {
			items := make([]item, len(rows))
			for i := range rows {
				items[i] = rows[i].Value
			}
			return o.table(items, now)
		},
		Changes: func(context.Context, []cmdutil.Answer[list], cmdutil.Answer[list]) (*cmdutil.Follower, func(client.Object) item, error) {
			return &cmdutil.Follower{Options: client.ListOptions{LabelSelector: o.Selector}}, func(object client.Object) item { return *object.(*item) }, nil
		},
	}
}

// readCluster reads the NodeMaintenances of a cluster.
func (o *listOptions) readCluster(ctx context.Context, e *cmdutil.Env) (*tidekeeperv1.NodeMaintenanceList, error) {
	c, err := e.Kubeconfig.Client()
	if err != nil {
		return nil, err
	}
	list, err := o.list(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	return list, o.NoteManagers(ctx, e, c, len(list.Items), unobserved(list.Items, e.Now()))
}

func (o *listOptions) table(items []tidekeeperv1.NodeMaintenance, now time.Time) *term.Table {
	return o.Output.Table(listTable(items, o.Output.Wide(), now, o.Local))
}

// listTable returns a table with a row for each NodeMaintenance. The parameter wide adds the
// columns of -o wide.
func listTable(items []tidekeeperv1.NodeMaintenance, wide bool, now time.Time, local *time.Location) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "NAME", Name: true}, {Header: "STATUS", Name: true}, {Header: "NODES"}, {Header: "DONE"}, {Header: "RUNNING"}, {Header: "FAILED"},
		{Header: "NEXT (" + term.Zone(now, local) + ")", Drop: 1},
	}}
	if wide {
		t.Columns = append(t.Columns, term.Column{Header: "ROUND", Drop: 4}, term.Column{Header: "UNTIL", Drop: 3}, term.Column{Header: "AGE", Drop: 2}, term.Column{Header: "MESSAGE", Text: 20, Drop: 5})
	}
	for i := range items {
		m := view.MaintenanceOf(&items[i], now)
		row := []term.Cell{term.Text(m.Name), term.Painted(cmdutil.ColorOf(m.Status.Severity), m.Status.Reason)}
		for _, count := range []int32{m.Nodes, m.Done, m.Running, m.Failed} {
			cell := term.Text("-")
			if m.Known {
				cell.Text = fmt.Sprint(count)
			}
			row = append(row, cell)
		}
		if m.Failed > 0 {
			row[len(row)-1].Color = term.Red
		}
		next := term.Text("-")
		if m.NextRound != nil {
			next = term.Cell{Text: term.Coming(*m.NextRound, now, local), Short: term.Moment(*m.NextRound, now, local)}
		}
		if row = append(row, next); wide {
			round := "-"
			if m.Round != nil {
				round = term.Moment(*m.Round, now, local)
			}
			row = append(row, term.Text(round), term.Text(m.Until), term.Text(term.Ago(m.Created, now)), term.Text(m.Status.Message))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
