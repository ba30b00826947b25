// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// doneOptions holds the flags and arguments of maintenance done.
type doneOptions struct {
	*cmdutil.Env
	dryRun cmdutil.DryRun
	names  []string
}

func newDoneCommand(e *cmdutil.Env) *cobra.Command {
	o := &doneOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "done NODE...",
		Short: "End the maintenance of drained nodes",
		Long: `done removes the annotation ` + tidekeeperv1.DrainedForMaintenanceAnnotation + ` from nodes. That ends
their maintenance, whatever spec.until says: once a node is ready, it is put back into use.
It is an error if a node is not drained for maintenance, and then no node is changed.

It needs the right to patch nodes.`,
		Example: `  kubectl tide maintenance done node-7
  kubectl tide maintenance done node-7 node-8 --dry-run=server`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s requires at least one NODE: see %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: e.Kubeconfig.CompleteDrainedNodes(),
		RunE:              cmdutil.RunE(o),
	}
	o.dryRun.AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *doneOptions) Complete(_ *cobra.Command, args []string) (err error) {
	o.names, err = nodeKind.Names(args)
	return err
}

// Validate implements [cmdutil.Options].
func (o *doneOptions) Validate() error { return o.dryRun.Validate() }

// Run implements [cmdutil.Options].
func (o *doneOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	nodes := make([]*corev1.Node, len(o.names))
	for i, name := range o.names {
		nodes[i] = &corev1.Node{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, nodes[i]); err != nil {
			return cmdutil.AboutKind(err, nodeKind.Name, "", name)
		}
		if err := drained(nodes[i]); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		of := node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation]
		if err := o.end(ctx, c, node); err != nil {
			return err
		}
		fmt.Fprintf(o.Console.Out, "node/%s: the maintenance %s of it is done; it is put back into use once it is ready%s\n", node.Name, of, o.dryRun.Suffix())
	}
	m, err := cmdutil.ManagerIfAllowed(ctx, o.Env, c)
	if err == nil {
		o.NoteManager(m, view.Unobserved{}, cmdutil.ThenRequest)
		o.NoteController(m, ControllerName, thenNotDrained)
	}
	return err
}

// drained returns an error if the node is not drained for maintenance.
func drained(node *corev1.Node) error {
	if _, ok := node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation]; ok {
		return nil
	}
	text := fmt.Sprintf("node %q is not drained for maintenance", node.Name)
	if _, ok := node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation]; ok {
		return errors.New(text + ": it is cordoned for one, and either still being drained, or on its way back: see kubectl tide maintenance describe")
	}
	return errors.New(text + ": nothing to end; kubectl get nodes -l " + tidekeeperv1.DrainedLabel + "=true lists the nodes that are")
}

// end removes the annotation [tidekeeperv1.DrainedForMaintenanceAnnotation] from the node. It fails
// if the node has been replaced by a new node with the same name.
func (o *doneOptions) end(ctx context.Context, c client.Client, node *corev1.Node) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:null}}}`, node.UID, tidekeeperv1.DrainedForMaintenanceAnnotation)
	return c.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(patch)), o.dryRun.PatchOptions()...)
}
