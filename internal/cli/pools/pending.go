// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// pendingOptions holds the flags and arguments of pools pending.
type pendingOptions struct{ roomOptions }

func newPendingCommand(e *cmdutil.Env) *cobra.Command {
	o := &pendingOptions{roomOptions{Env: e}}
	cmd := &cobra.Command{
		Use:   "pending [POOL...]",
		Short: "Pending pods, and which pool could take them: now, on an empty node, or never",
		Long: `pending groups the pods that the scheduler found no node for by their requests and
constraints, and shows for each group and pool whether the pool could take them now, only on
an empty node, only on a new node like its spec.nodeTemplate, or never, and why. The groups
add up to all pending pods of the cluster.

If no node has room for a group, and the scheduler would evict pods of lower priority for its
first pod (preemption), or is doing so, the node and these pods are named.

A pod that fits now but stays pending waits for something that is not evaluated here:
kubectl describe pod shows the scheduler's last message.`,
		Example: `  kubectl tide pools pending
  kubectl tide pools pending gpu -o json | jq '.[].pods'`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.output.Shows([]view.PendingGroup{}).AddTo(cmd)
	return cmd
}

// Run implements [cmdutil.Options].
func (o *pendingOptions) Run(ctx context.Context) error {
	c, r, err := o.open(ctx)
	if err != nil {
		return err
	}
	if err := readDaemonSets(ctx, c, r); err != nil {
		return err
	}
	if err := readNeeds(ctx, c, r, slices.DeleteFunc(slices.Clone(r.Pods), func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })); err != nil {
		return err
	}
	groups, err := o.pendingGroups(ctx, c, r)
	if err != nil {
		return err
	}
	if done, err := o.output.Print(o.Console.Out, groups); done {
		return err
	}
	if len(groups) == 0 {
		o.Console.Note("No pod is pending.")
		return nil
	}
	if err := pendingTable(groups).WriteTo(o.Console.Out, o.Console.Screen); err != nil {
		return err
	}
	var lines []string
	for _, g := range groups {
		if g.Preemption != nil {
			lines = append(lines, view.PreemptionText(g.Preemption, g.Namespace))
		}
	}
	o.printLines(lines)
	return nil
}

func pendingTable(groups []view.PendingGroup) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "PODS"}, {Header: "NAMESPACE", Name: true, Drop: 2}, {Header: "WORKLOAD", Name: true}, {Header: "EACH REQUESTS", Drop: 1}, {Header: "POOL", Name: true}, {Header: "FITS"}, {Header: "WHY NOT", Text: 12},
	}}
	for _, g := range groups {
		head := []term.Cell{term.Text(strconv.Itoa(len(g.Pods))), term.Text(g.Namespace), term.Text(g.WorkloadText()), term.Text(resources.Text(g.Requests))}
		if len(g.Pools) == 0 {
			t.Rows = append(t.Rows, append(head, term.Text("-"), term.Text("-"), term.Text("no pool has nodes")))
		}
		for i, in := range g.Pools {
			if i > 0 {
				head = []term.Cell{term.Text(""), term.Text(""), term.Text(""), term.Text("")}
			}
			t.Rows = append(t.Rows, append(slices.Clone(head), term.Text(in.Pool), answerCell(in), term.Text(view.CountsText(in.Refused))))
		}
	}
	return t
}

// answerCell describes whether a group of pending pods fits into a pool: now, on an empty node, on
// a new node or never.
func answerCell(in view.PendingIn) term.Cell {
	text, severity := in.AnswerText()
	return term.Painted(cmdutil.ColorOf(severity), text)
}
