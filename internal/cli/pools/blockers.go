// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// blockersOptions holds the flags and arguments of pools blockers.
type blockersOptions struct {
	nodesOptions
	try bool
}

func newBlockersCommand(e *cmdutil.Env) *cobra.Command {
	o := &blockersOptions{nodesOptions: nodesOptions{roomOptions: roomOptions{Env: e}}}
	cmd := &cobra.Command{
		Use:   "blockers [POOL...] [--node NAME] [--try]",
		Short: "Pods that would not leave a node that is drained, and why",
		Long: `blockers shows, for each node of a pool, the pods that would not leave if the node was
drained, or not without harm: why, since when, and what to do about it. Nothing is changed.

` + reasonsText() + `
Pods of DaemonSets and static pods are left out: they stay with their node. Each node is
looked at by itself. For NoPlace, the rules of kubectl tide pools loss apply.

With --try, the API server is asked to evict each of the other pods in a dry run: it
answers as it would, by budgets and webhooks, and evicts nothing. That needs the right to
create pods/eviction.

Exit codes: 0 all pods would leave, 2 not all, 1 an error, or those of kubectl tide --help.`,
		Example: `  kubectl tide pools blockers
  kubectl tide pools blockers worker --try
  kubectl tide pools blockers --node node-7
  kubectl tide pools blockers -o json | jq '.[] | select(.blockers != []) | .node'`,
		RunE: cmdutil.RunE(o),
	}
	o.addTo(cmd, "these nodes, instead of the nodes of pools")
	cmd.Flags().BoolVar(&o.try, "try", false, "ask the API server too, by evictions in a dry run")
	o.output.Shows([]view.NodeBlockers{}).AddTo(cmd)
	return cmd
}

// reasonsText returns the part of the help text that explains each reason for which a pod blocks a
// drain.
func reasonsText() string {
	var text strings.Builder
	for _, r := range drain.Reasons {
		fmt.Fprintf(&text, "  %-16s %s\n", r.Reason, r.Meaning)
	}
	return text.String()
}

// Run implements [cmdutil.Options].
func (o *blockersOptions) Run(ctx context.Context) error {
	c, r, err := o.open(ctx)
	if err != nil {
		return err
	}
	if err := checkNodes(r, o.nodes); err != nil {
		return err
	}
	world, err := o.readWorld(ctx, c, r.Nodes)
	if err != nil {
		return err
	}
	now := time.Now()
	all := r.Blockers(world, o.nodes, now)
	if o.try {
		if err := tryEvictions(ctx, c, r.Pods, all); err != nil {
			return err
		}
	}
	if done, err := o.output.Print(o.Console.Out, all); err != nil {
		return err
	} else if !done {
		if err := o.print(all, now); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(all, func(n view.NodeBlockers) bool { return len(n.Blockers) > 0 }) {
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	}
	return nil
}

// readWorld reads the PodDisruptionBudgets, and the PersistentVolumes that are bound to
// PersistentVolumeClaims. If the user is not allowed to read volumes, it prints a note that volumes
// are not evaluated.
func (o *blockersOptions) readWorld(ctx context.Context, c client.Client, nodes []*corev1.Node) (*drain.World, error) {
	world, unread, err := ReadDrainWorld(ctx, c, nodes)
	if unread != nil {
		o.Console.Note("Volumes are not evaluated: " + unread.Error())
	}
	return world, err
}

// ReadDrainWorld reads the objects that determine whether nodes can be drained: the
// PodDisruptionBudgets, and the PersistentVolumes that are bound to PersistentVolumeClaims. If the
// user is not allowed to list PersistentVolumes, it returns that error as `unread`, and a world
// without volumes.
func ReadDrainWorld(ctx context.Context, c client.Client, nodes []*corev1.Node) (world *drain.World, unread, err error) {
	used := drain.Volumes{Of: map[[2]string]*corev1.PersistentVolume{}, Nodes: nodes}
	budgets := &policyv1.PodDisruptionBudgetList{}
	if err := c.List(ctx, budgets, cmdutil.FromCache()); err != nil {
		return nil, nil, err
	}
	volumes := &corev1.PersistentVolumeList{}
	if err := c.List(ctx, volumes, cmdutil.FromCache()); apierrors.IsForbidden(err) {
		unread = err
	} else if err != nil {
		return nil, nil, err
	}
	for i := range volumes.Items {
		if of := volumes.Items[i].Spec.ClaimRef; of != nil {
			used.Of[[2]string{of.Namespace, of.Name}] = &volumes.Items[i]
		}
	}
	return drain.NewWorld(budgets.Items, used), unread, nil
}

func (o *blockersOptions) print(all []view.NodeBlockers, now time.Time) error {
	if len(all) == 0 {
		o.Console.Note("The pools have no nodes.")
		return nil
	}
	t := &term.Table{Columns: []term.Column{
		{Header: "POOL", Name: true, Drop: 3}, {Header: "NODE", Name: true}, {Header: "REASON"}, {Header: "NAMESPACE", Name: true, Drop: 1}, {Header: "WORKLOAD", Name: true}, {Header: "PODS"},
		{Header: "SINCE", Drop: 2}, {Header: "WHY", Text: 20}, {Header: "WHAT TO DO", Text: 12},
	}}
	blocked := 0
	var unevaluated []string
	for _, n := range all {
		unevaluated = append(unevaluated, n.AtMost...)
		if len(n.Blockers) > 0 {
			blocked++
		}
		for _, b := range n.Blockers {
			since := "-"
			if b.Since != nil {
				since = term.Ago(b.Since.Time, now)
			}
			t.Rows = append(t.Rows, []term.Cell{
				term.Text(cmp.Or(n.Pool, "-")), term.Text(n.Node), term.Painted(term.Red, string(b.Reason)), term.Text(b.Namespace), term.Text(b.Workload), term.Text(strconv.Itoa(b.Count)),
				term.Text(since), term.Text(b.Message), term.Text(b.Advice),
			})
		}
	}
	if len(t.Rows) > 0 {
		if err := t.WriteTo(o.Console.Out, o.Console.Screen); err != nil {
			return err
		}
		fmt.Fprintln(o.Console.Out)
	}
	fmt.Fprintf(o.Console.Out, "%d of %d nodes can be drained, one at a time, without harm.\n", len(all)-blocked, len(all))
	o.printUnevaluated(unevaluated)
	return nil
}
