// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// describeOptions holds the flags and arguments of maintenance describe.
type describeOptions struct {
	*cmdutil.Env
	output cmdutil.DataOutput
	all    bool

	names []string
}

func newDescribeCommand(e *cmdutil.Env) *cobra.Command {
	o := &describeOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "describe NAME...",
		Short: "A round of maintenance, node by node: what each waits for, and what to do",
		Long: `describe shows a NodeMaintenance and its round: which nodes have failed and why, which are
being maintained, since when, what they wait for and what to do, and why the drain of the others
has not begun: a closed window, a freeze, the limit of unavailable nodes, an earlier pool, or
pods without a place elsewhere. The reasons of nodes that wait are computed by the plugin, as
the manager would decide now.

If the last round has ended, the nodes of the next round are shown.`,
		Example: `  kubectl tide maintenance describe reboot
  kubectl tide maintenance describe reboot -o json | jq '.members[] | select(.phase == "Failed")'`,
		Args:              cmdutil.SomeNames,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "show all nodes that wait or are done, not only the first ones")
	o.output.Shows(view.MaintenanceDetail{}, []view.MaintenanceDetail{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *describeOptions) Complete(_ *cobra.Command, args []string) (err error) {
	o.names, err = maintenanceKind.Names(args)
	return err
}

// Validate implements [cmdutil.Options].
func (o *describeOptions) Validate() error { return o.output.Validate() }

// Run implements [cmdutil.Options].
func (o *describeOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	items, err := readNamed(ctx, c, o.names)
	if err != nil {
		return err
	}
	details, err := o.details(ctx, c, items)
	if err != nil {
		return err
	}
	if done, err := cmdutil.PrintDetails(&o.output, o.Console.Out, details, o.print); done || err != nil {
		return err
	}
	m, err := cmdutil.ManagerIfAllowed(ctx, o.Env, c)
	if err == nil {
		o.NoteManager(m, unobserved(items, o.Now()), cmdutil.ThenOutdated)
		o.NoteController(m, ControllerName, thenNotDrained)
	}
	return err
}

// readNamed reads NodeMaintenances by name.
func readNamed(ctx context.Context, c client.Client, names []string) ([]tidekeeperv1.NodeMaintenance, error) {
	items := make([]tidekeeperv1.NodeMaintenance, len(names))
	for i, name := range names {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &items[i]); err != nil {
			return nil, cmdutil.AboutKind(err, maintenanceKind.Name, "", name)
		}
	}
	return items, nil
}

// details returns the details of NodeMaintenances. It omits events if the user is not allowed to
// list events. It reads pods only if the pods determine whether a drain begins now.
func (o *describeOptions) details(ctx context.Context, c client.Client, items []tidekeeperv1.NodeMaintenance) ([]view.MaintenanceDetail, error) {
	w, err := readWorld(ctx, o.Env, c, items)
	if err != nil {
		return nil, err
	}
	now := o.Now()
	var details []view.MaintenanceDetail
	for i := range items {
		m := &items[i]
		round, err := view.RoundOf(w.facts(m, now), now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", displayName(m), err)
		}
		if len(round.Input.Waiting) > 0 && round.Held == nil && w.room == nil {
			if err := w.readPods(ctx, o.Env, c); err != nil {
				return nil, err
			}
			if round, err = view.RoundOf(w.facts(m, now), now); err != nil {
				return nil, err
			}
		}
		events, _, err := cmdutil.Events(ctx, o.Env, c, maintenanceKind.Name, m.Name)
		if err != nil {
			return nil, err
		}
		details = append(details, view.MaintenanceDetailOf(m, round, events, now))
	}
	return details, nil
}
