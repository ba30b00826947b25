// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// listOptions holds the flags and arguments of the command pools.
type listOptions struct {
	cmdutil.Listing

	cmd   *cobra.Command
	names []string
}

func newListCommand(e *cmdutil.Env) *cobra.Command {
	o := &listOptions{Listing: cmdutil.Listing{Env: e, Kind: poolKind.Name, Plural: "node pools", Empty: emptyList}}
	cmd := &cobra.Command{
		Use:        "pools [NAME...]",
		Aliases:    []string{"pool", "nodepools", "nodepool", "np"},
		SuggestFor: []string{"node", "nodes"},
		Short:      "Node pools: requested resources, ready nodes, conflicts",
		Long: `pools lists node pools: the status of each, how many of its nodes are ready, and the
share of the nodes' allocatable resources that pods request. On a terminal the
percentages have bars, if there is room for them. -o wide also shows the largest pod, by
CPU, that can start now; describe shows other shapes. -o wide, json and yaml include the
resources that the nodes use, if the cluster serves metrics.k8s.io.

With --contexts it lists the pools of several clusters. A cluster that does not answer
within ten seconds, or --request-timeout, has a line with the reason, and the exit code
is 1.`,
		Example: `  kubectl tide pools
  kubectl tide pools worker gpu
  kubectl tide pools -w
  kubectl tide pools --contexts prod,edge
  kubectl tide pools --sort-by .status.requestedPercent.cpu
  kubectl tide pools -o json | jq '.items[].status.requestedPercent'`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.AddTo(cmd, "only pools with these labels, such as team=web")
	cmd.Flags().BoolP("all-namespaces", "A", false, "has no effect: node pools are not namespaced")
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *listOptions) Complete(cmd *cobra.Command, args []string) (err error) {
	o.cmd = cmd
	if o.names, err = poolKind.Names(args); err != nil {
		return err
	}
	return o.CompleteFlags(cmd)
}

// Validate implements [cmdutil.Options].
func (o *listOptions) Validate() error {
	if err := o.ValidateFlags(); err != nil {
		return err
	}
	switch {
	case len(o.names) > 0 && o.LabelSelector != "":
		return fmt.Errorf("write either names or -l, not both")
	case o.Watch && len(o.names) > 1:
		return fmt.Errorf("-w follows either one pool or all pools: write one name")
	case o.Watch && !o.Output.IsTable():
		return fmt.Errorf("-w only prints tables: kubectl get nodepools -w -o %s follows the objects", o.Output.Format())
	default:
		return nil
	}
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
	list, err := o.list(ctx, c)
	if err != nil {
		return err
	}
	if err := o.Output.Sort(list); err != nil {
		return err
	}
	if !o.Output.IsTable() {
		return o.printObjects(ctx, c, list)
	}
	t := o.table(list.Items, o.Now())
	if o.showsUsed() {
		used, err := usedByPools(ctx, o.Env, c, list.Items)
		if err != nil {
			return err
		}
		addUsed(t, list.Items, used)
	}
	return o.Print(ctx, c, t, unobserved(list.Items, o.Now()), &cmdutil.Follower{
		List: list, Options: o.listOptions(),
		Table: func(object client.Object, now time.Time) *term.Table {
			return o.table([]tidekeeperv1.NodePool{*object.(*tidekeeperv1.NodePool)}, now)
		},
	})
}

// printObjects prints the pools in the format of -o. Except for -o name, it adds the measured usage
// of each pool's nodes.
func (o *listOptions) printObjects(ctx context.Context, c client.Client, list *tidekeeperv1.NodePoolList) error {
	if o.Output.Format() == "name" {
		return o.Output.Print(list, o.Console.Out)
	}
	used, err := usedByPools(ctx, o.Env, c, list.Items)
	if err != nil {
		return err
	}
	shown, err := withUsed(list, used)
	if err != nil {
		return err
	}
	return o.Output.Print(shown, o.Console.Out)
}

// unobserved counts the pools whose latest change no manager has observed, so that their status may
// be outdated.
func unobserved(items []tidekeeperv1.NodePool, now time.Time) (unobserved view.Unobserved) {
	for i := range items {
		unobserved.Add(poolKind.Name, &items[i], items[i].Status.ObservedGeneration, now)
	}
	return unobserved
}

func (o *listOptions) table(items []tidekeeperv1.NodePool, now time.Time) *term.Table {
	return o.Output.Table(listTable(items, o.Output.Wide(), now))
}

// listOptions returns the API list options. They select the named pool if the arguments name a
// single pool, and otherwise the pools with the labels of -l.
func (o *listOptions) listOptions() client.ListOptions {
	options := client.ListOptions{LabelSelector: o.Selector}
	if len(o.names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, o.names[0])
	}
	return options
}

// list reads the selected pools. It returns an error if a named pool does not exist.
func (o *listOptions) list(ctx context.Context, c client.Client) (*tidekeeperv1.NodePoolList, error) {
	if len(o.names) < 2 {
		options := o.listOptions()
		list, err := listPools(ctx, c, &options)
		if err == nil && len(o.names) == 1 && len(list.Items) == 0 {
			err = cmdutil.MissingName(o.cmd, o.names[0], cmdutil.NotFound(poolKind.Name, "", o.names[0]))
		}
		return list, err
	}
	list, err := listPools(ctx, c)
	if err != nil {
		return nil, err
	}
	picked, missing := cmdutil.Pick(list.Items, o.names)
	if missing != "" {
		return nil, cmdutil.MissingName(o.cmd, missing, cmdutil.NotFound(poolKind.Name, "", missing))
	}
	list.Items = picked
	return list, nil
}

// listPools lists pools. It sets the kind of the list and of its objects, which the client leaves
// empty.
func listPools(ctx context.Context, c client.Client, options ...client.ListOption) (*tidekeeperv1.NodePoolList, error) {
	list := &tidekeeperv1.NodePoolList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, cmdutil.AboutKind(err, poolKind.Name, "", "")
	}
	cmdutil.SetKinds(list, poolKind.Name)
	return list, nil
}

// levelColumns lists the resources that have a column in the table of pools. The command describe
// and -o wide also show other resources, such as GPUs.
var levelColumns = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// levelBars lists the possible lengths of a bar in characters, longest first.
var levelBars = []int{10, 5}

// listTable returns a table with a row for each NodePool. The parameter wide adds the columns of -o
// wide.
func listTable(items []tidekeeperv1.NodePool, wide bool, now time.Time) *term.Table {
	t := &term.Table{Bars: levelBars, Columns: []term.Column{
		{Header: "NAME", Name: true}, {Header: "STATUS", Name: true}, {Header: "READY"}, {Header: "CPU"}, {Header: "MEMORY"}, {Header: "PODS"},
		{Header: "CONFLICTS", Drop: 1}, {Header: "AGE", Drop: 2},
	}}
	if wide {
		t.Columns = append(t.Columns, term.Column{Header: "CPU-OF", Drop: 6}, term.Column{Header: "MEMORY-OF", Drop: 5},
			term.Column{Header: "FITS NOW", Drop: 4}, term.Column{Header: "OTHER", Drop: 4},
			term.Column{Header: "MESSAGE", Text: 20, Drop: 7})
	}
	for i := range items {
		t.Rows = append(t.Rows, listRow(view.PoolOf(&items[i], now), wide, now))
	}
	return t
}

func listRow(p view.Pool, wide bool, now time.Time) []term.Cell {
	ready := term.Text(fmt.Sprintf("%d/%d", p.ReadyNodes, p.Nodes))
	if p.ReadyNodes < p.Nodes {
		ready.Color = term.Yellow
	}
	row := []term.Cell{term.Text(p.Name), term.Painted(cmdutil.ColorOf(p.Status.Severity), p.Status.Reason), ready}
	for _, name := range levelColumns {
		row = append(row, levelCell(p.Levels, name))
	}
	conflicts := term.Text("-")
	if p.Conflicted {
		conflicts = term.Painted(term.Red, "yes")
	}
	row = append(row, conflicts, term.Text(term.Ago(p.Created, now)))
	if wide {
		row = append(row, term.Text(amountOf(p.Levels, corev1.ResourceCPU)), term.Text(amountOf(p.Levels, corev1.ResourceMemory)), largestFitCell(p.LargestFits),
			term.Text(otherLevels(p.Levels)), term.Text(p.Status.Message))
	}
	return row
}

// largestFitCell describes the largest pod that could start now. If the pool's status lists several
// such pods, it describes the first, which requests the most CPU.
func largestFitCell(fits []tidekeeperv1.LargestFit) term.Cell {
	if len(fits) == 0 {
		return term.Text("-")
	}
	return term.Cell{Text: view.LargestFitText(fits[0]), Short: resources.Text(fits[0].Resources)}
}

// levelCell formats the percentage of a resource that pods request, with a bar if the screen is
// wide enough. It is "-" if the percentage is unknown.
func levelCell(levels []view.Level, name corev1.ResourceName) term.Cell {
	l, known := view.LevelOf(levels, name)
	if !known {
		return term.Text("-")
	}
	return term.Cell{
		Text: fmt.Sprintf("%d%%", l.Percent), Color: cmdutil.ColorOf(l.Severity()),
		Bar: &term.Bar{Share: float64(l.Percent) / 100, Ground: true}, BarText: 4,
	}
}

func amountOf(levels []view.Level, name corev1.ResourceName) string {
	l, _ := view.LevelOf(levels, name)
	return l.Amount()
}

// otherLevels lists the percentages that pods request of the resources without a column in the
// table. It returns "-" if there are no such resources.
func otherLevels(levels []view.Level) string {
	var texts []string
	for _, l := range levels {
		if !slices.Contains(levelColumns, corev1.ResourceName(l.Resource)) {
			texts = append(texts, fmt.Sprintf("%s %d%%", l.Resource, l.Percent))
		}
	}
	if len(texts) == 0 {
		return "-"
	}
	return strings.Join(texts, ", ")
}
