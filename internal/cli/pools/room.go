// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// roomOptions holds the flags and arguments that the commands fit, loss, pending and blockers
// share.
type roomOptions struct {
	*cmdutil.Env
	output cmdutil.DataOutput

	names []string // names of pools; empty for all pools
}

// Complete implements [cmdutil.Options].
func (o *roomOptions) Complete(_ *cobra.Command, args []string) (err error) {
	o.names, err = poolKind.Names(args)
	return err
}

// Validate implements [cmdutil.Options].
func (o *roomOptions) Validate() error { return o.output.Validate() }

// open returns a client, and the [view.Room] with the selected pools, all nodes and all pods of the
// cluster.
func (o *roomOptions) open(ctx context.Context) (client.Client, *view.Room, error) {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return nil, nil, err
	}
	r, err := o.read(ctx, c)
	return c, r, err
}

// printUnevaluated prints the pod constraints that were not evaluated, if any.
func (o *roomOptions) printUnevaluated(constraints []string) {
	if len(constraints) > 0 {
		slices.Sort(constraints)
		fmt.Fprintf(o.Console.Out, "Not evaluated: %s. More pods may be without a place.\n", strings.Join(slices.Compact(constraints), ", "))
	}
}

// nodesOptions holds the flags and arguments that the commands loss and blockers share. Both
// evaluate either pools or individual nodes.
type nodesOptions struct {
	roomOptions
	nodes []string // names of nodes; empty to evaluate the nodes of pools
}

// addTo adds the flag --node to a command.
func (o *nodesOptions) addTo(cmd *cobra.Command, usage string) {
	cmd.ValidArgsFunction = o.Kubeconfig.CompleteNames(emptyList)
	cmd.Flags().StringSliceVar(&o.nodes, "node", nil, usage)
}

// Complete implements [cmdutil.Options].
func (o *nodesOptions) Complete(cmd *cobra.Command, args []string) error {
	slices.Sort(o.nodes)
	o.nodes = slices.Compact(o.nodes)
	return o.roomOptions.Complete(cmd, args)
}

// Validate implements [cmdutil.Options].
func (o *nodesOptions) Validate() error {
	if len(o.nodes) > 0 && len(o.names) > 0 {
		return errors.New("leave out the name of the pool: --node is about nodes of any pool")
	}
	return o.roomOptions.Validate()
}

// checkNodes returns an error if a node with one of the given names does not exist.
func checkNodes(r *view.Room, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(r.Nodes, func(n *corev1.Node) bool { return n.Name == name }) {
			return cmdutil.NotFound("Node", "", name)
		}
	}
	return nil
}

// read reads the pools that the arguments name, and all nodes and pods of the cluster.
func (o *roomOptions) read(ctx context.Context, c client.Client) (*view.Room, error) {
	all, err := listPools(ctx, c)
	if err != nil {
		return nil, err
	}
	asked := all.Items
	if len(o.names) > 0 {
		var missing string
		if asked, missing = cmdutil.Pick(all.Items, slices.Sorted(slices.Values(o.names))); missing != "" {
			return nil, cmdutil.NotFound(poolKind.Name, "", missing)
		}
	}
	list := &corev1.NodeList{}
	if err := c.List(ctx, list, cmdutil.FromCache()); err != nil {
		return nil, err
	}
	running, err := cmdutil.AllPods(ctx, c)
	if err != nil {
		return nil, err
	}
	r, problems := view.NewRoom(lists.Pointers(asked), lists.Pointers(list.Items), lists.Pointers(running))
	for _, problem := range problems {
		o.Console.Note(problem)
	}
	return r, nil
}

// readDaemonSets sets r.DaemonSets if a pool has a nodeTemplate, because pods of DaemonSets also
// run on new nodes. If the user is not allowed to list DaemonSets, r.DaemonSets stays nil
// (unknown), and results about new nodes are upper bounds.
func readDaemonSets(ctx context.Context, c client.Client, r *view.Room) error {
	if !r.HasTemplate() {
		return nil
	}
	sets := &appsv1.DaemonSetList{}
	if err := c.List(ctx, sets, cmdutil.FromCache()); apierrors.IsForbidden(err) {
		return nil
	} else if err != nil {
		return err
	}
	r.DaemonSets = lists.Pointers(sets.Items)
	return nil
}
