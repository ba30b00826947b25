// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// lossOptions holds the flags and arguments of pools loss.
type lossOptions struct {
	nodesOptions
	zones []string
	added map[string]int
	sequenceOptions
}

func newLossCommand(e *cmdutil.Env) *cobra.Command {
	o := &lossOptions{nodesOptions: nodesOptions{roomOptions: roomOptions{Env: e}}}
	cmd := &cobra.Command{
		Use:   "loss [POOL...] [--node NAME [--then NAME] | --zone NAME]",
		Short: "Whether the pods of a lost node or zone would fit on other nodes",
		Long: `loss shows for each pool the effect of losing its worst node, and of losing each of its
zones: how many pods need another place, and for how many of them none was found on the
other nodes of the cluster.

The pods with the largest requests are placed first, by requests, taints, node selectors
and node affinity. If all of them found a place, the scheduler can place them too, but may
choose other nodes. If some found none, a better placement may still exist.
Pods of DaemonSets are lost with their node, and pods without a controller are not replaced.
With --then, further nodes are lost one after the other: pods that found a place on such a
node need another one.
Affinity between pods, topology spread, host ports, and zones and attach limits of volumes
are evaluated; devices of ResourceClaims are not, and are named.

Exit codes: 0 a place was found for all pods, 2 not for all, 1 an error, or those of
kubectl tide --help.`,
		Example: `  kubectl tide pools loss
  kubectl tide pools loss worker --zone eu-west-1a
  kubectl tide pools loss --node node-7 --node node-8   # both at once
  kubectl tide pools loss --node node-7 --then node-8 --cordon node-9
  kubectl tide pools loss --node node-7 --surge deployment/web -n shop
  kubectl tide pools loss -o json | jq '.[] | select(.withoutPlace != [])'`,
		RunE: cmdutil.RunE(o),
	}
	o.nodesOptions.addTo(cmd, "these nodes, all lost at the same time, instead of the worst node of each pool")
	cmd.Flags().StringSliceVar(&o.zones, "zone", nil, "only these zones, each lost by itself")
	o.sequenceOptions.addTo(cmd)
	cmd.Flags().StringToIntVar(&o.added, "new-nodes", nil, "first add nodes like spec.nodeTemplate, as POOL=COUNT")
	o.output.Shows([]view.PoolLoss{}).AddTo(cmd)
	return cmd
}

// Validate implements [cmdutil.Options].
func (o *lossOptions) Validate() error {
	if len(o.nodes) > 0 && len(o.zones) > 0 {
		return errors.New("write either --node or --zone, not both")
	}
	for pool, count := range o.added {
		if count < 0 || count > view.MostNewNodes {
			return fmt.Errorf("--new-nodes %s=%d: write a number from 0 to %d", pool, count, view.MostNewNodes)
		}
	}
	if err := o.validate(len(o.nodes) > 0); err != nil {
		return err
	}
	return o.nodesOptions.Validate()
}

// addNewNodes adds new nodes to the pools in r, as the flag --new-nodes requests.
func (o *lossOptions) addNewNodes(ctx context.Context, c client.Client, r *view.Room) error {
	if len(o.added) == 0 {
		return nil
	}
	if err := readDaemonSets(ctx, c, r); err != nil {
		return err
	}
	for _, pool := range slices.Sorted(maps.Keys(o.added)) {
		if err := r.AddNewNodes(pool, o.added[pool]); err != nil {
			return err
		}
	}
	if r.DaemonSets == nil {
		o.Console.Note("new nodes are without pods of DaemonSets, which you may not list: kubectl auth can-i list daemonsets.apps -A")
	}
	return nil
}

// Run implements [cmdutil.Options].
func (o *lossOptions) Run(ctx context.Context) error {
	c, r, err := o.open(ctx)
	if err != nil {
		return err
	}
	if err := o.addNewNodes(ctx, c, r); err != nil {
		return err
	}
	losses, err := o.losses(ctx, c, r)
	if err != nil {
		return err
	}
	if done, err := o.output.Print(o.Console.Out, losses); err != nil {
		return err
	} else if !done {
		if err := o.print(losses); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(losses, func(l view.PoolLoss) bool { return l.Homeless() > 0 }) {
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	}
	return nil
}

// losses returns the effects of losing the nodes or zones that the flags select.
func (o *lossOptions) losses(ctx context.Context, c client.Client, r *view.Room) ([]view.PoolLoss, error) {
	if len(o.nodes) > 0 {
		return o.sequence(ctx, c, r)
	}
	volumes, err := readVolumes(ctx, c, r.Pods)
	if err != nil {
		return nil, err
	}
	r.SetNeeds(volumes, nil)
	zones := r.Cluster.Zones()
	for _, zone := range o.zones {
		if len(zones[zone]) == 0 {
			return nil, fmt.Errorf("no node has the label %s=%s", corev1.LabelTopologyZone, zone)
		}
	}
	return r.Losses(o.zones), nil
}

func (o *lossOptions) print(losses []view.PoolLoss) error {
	if len(losses) == 0 {
		o.Console.Note("The pools have no nodes.")
		return nil
	}
	t := &term.Table{Columns: []term.Column{
		{Header: "POOL", Name: true}, {Header: "LOST", Name: true}, {Header: "PODS"}, {Header: "WITHOUT PLACE"}, {Header: "WORKLOADS", Text: 10}, {Header: "THEY REQUEST", Drop: 1},
	}}
	var unevaluated []string
	for _, l := range losses {
		unevaluated = append(unevaluated, l.AtMost...)
		homeless := term.Text("0")
		requests := "-"
		if n := l.Homeless(); n > 0 {
			homeless, requests = term.Painted(term.Red, strconv.Itoa(n)), resources.Text(l.Requests)
		}
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(cmp.Or(l.Pool, "-")), term.Text(l.LostText()), term.Text(strconv.Itoa(l.Pods)), homeless, term.Text(view.WithoutPlaceText(l.WithoutPlace)), term.Text(requests),
		})
	}
	if err := t.WriteTo(o.Console.Out, o.Console.Screen); err != nil {
		return err
	}
	if len(unevaluated) > 0 {
		fmt.Fprintln(o.Console.Out)
	}
	o.printUnevaluated(unevaluated)
	return nil
}
