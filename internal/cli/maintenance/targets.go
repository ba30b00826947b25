// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// targets implements the flags and arguments that select the NodeMaintenances to change.
type targets struct {
	*cmdutil.Env
	labelSelector string
	all           bool
	dryRun        cmdutil.DryRun

	names    []string
	selector labels.Selector
}

func (t *targets) addTo(cmd *cobra.Command) {
	cmd.ValidArgsFunction = t.Kubeconfig.CompleteNames(emptyList)
	cmd.Flags().StringVarP(&t.labelSelector, "selector", "l", "", "select maintenances with these labels, such as team=infra, instead of names")
	cmd.Flags().BoolVar(&t.all, "all", false, "select all maintenances, instead of names")
	t.dryRun.AddTo(cmd)
}

// Complete implements [cmdutil.Options].
func (t *targets) Complete(_ *cobra.Command, args []string) (err error) {
	if t.names, err = maintenanceKind.Names(args); err != nil {
		return err
	}
	if t.selector, err = labels.Parse(t.labelSelector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	return nil
}

// Validate implements [cmdutil.Options].
func (t *targets) Validate() error {
	ways := min(len(t.names), 1)
	for _, given := range []bool{t.labelSelector != "", t.all} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("name maintenances, or select them by -l or by --all: one of the three")
	}
	return t.dryRun.Validate()
}

// read returns the selected NodeMaintenances. It fails if a named object does not exist, before any
// object is changed.
func (t *targets) read(ctx context.Context, c client.Client) ([]tidekeeperv1.NodeMaintenance, error) {
	list, err := listMaintenances(ctx, c, client.MatchingLabelsSelector{Selector: t.selector})
	if err != nil {
		return nil, err
	}
	if len(t.names) > 0 {
		return pick(list.Items, t.names)
	}
	if len(list.Items) == 0 {
		t.Console.NothingFound("maintenances", "", t.labelSelector != "")
	}
	return list.Items, nil
}

// pick returns the NodeMaintenances with the given names, in the same order. It returns an error if
// a NodeMaintenance does not exist.
func pick(all []tidekeeperv1.NodeMaintenance, names []string) (picked []tidekeeperv1.NodeMaintenance, err error) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(m tidekeeperv1.NodeMaintenance) bool { return m.Name == name })
		if i < 0 {
			return nil, cmdutil.NotFound(maintenanceKind.Name, "", name)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// listMaintenances lists NodeMaintenances. It sets their kind, which the client leaves empty.
func listMaintenances(ctx context.Context, c client.Client, options ...client.ListOption) (*tidekeeperv1.NodeMaintenanceList, error) {
	list := &tidekeeperv1.NodeMaintenanceList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, cmdutil.AboutKind(err, maintenanceKind.Name, "", "")
	}
	list.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(maintenanceKind.Name + "List"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(maintenanceKind.Name))
	}
	return list, nil
}
