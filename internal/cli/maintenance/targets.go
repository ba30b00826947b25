// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// targets implements the flags and arguments that select the NodeMaintenances to change.
type targets struct {
	*cmdutil.Env
	cmdutil.Selection
	names []string
}

func (t *targets) addTo(cmd *cobra.Command) {
	cmd.ValidArgsFunction = t.Kubeconfig.CompleteNames(emptyList)
	t.AddTo(cmd, "select maintenances with these labels, such as team=infra, instead of names", "select all maintenances, instead of names")
}

// Complete implements [cmdutil.Options].
func (t *targets) Complete(_ *cobra.Command, args []string) (err error) {
	if t.names, err = maintenanceKind.Names(args); err != nil {
		return err
	}
	return t.Selection.Complete()
}

// Validate implements [cmdutil.Options].
func (t *targets) Validate() error {
	return t.Selection.Validate(len(t.names), "name maintenances")
}

// read returns the selected NodeMaintenances. It returns an error if a named object does not exist.
func (t *targets) read(ctx context.Context, c client.Client) ([]tidekeeperv1.NodeMaintenance, error) {
	list, err := listMaintenances(ctx, c, client.MatchingLabelsSelector{Selector: t.Selector})
	if err != nil {
		return nil, err
	}
	if len(t.names) > 0 {
		return pick(list.Items, t.names)
	}
	if len(list.Items) == 0 {
		t.Console.NothingFound("maintenances", "", t.LabelSelector != "")
	}
	return list.Items, nil
}

// pick returns the NodeMaintenances with the given names, in the same order. It returns an error if
// a NodeMaintenance does not exist.
func pick(all []tidekeeperv1.NodeMaintenance, names []string) ([]tidekeeperv1.NodeMaintenance, error) {
	picked, missing := cmdutil.Pick(all, names)
	if missing != "" {
		return nil, cmdutil.NotFound(maintenanceKind.Name, "", missing)
	}
	return picked, nil
}

// listMaintenances lists NodeMaintenances. It sets the kind of the list and of its objects, which
// the client leaves empty.
func listMaintenances(ctx context.Context, c client.Client, options ...client.ListOption) (*tidekeeperv1.NodeMaintenanceList, error) {
	list := &tidekeeperv1.NodeMaintenanceList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, cmdutil.AboutKind(err, maintenanceKind.Name, "", "")
	}
	cmdutil.SetKinds(list, maintenanceKind.Name)
	return list, nil
}
