// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// describeOptions holds the flags and arguments of pools describe.
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
		Short: "A pool in detail: its settings, nodes and events",
		Long: `describe shows a pool: its settings; the requested, free and lost resources; the free
devices of each DeviceClass; the largest pod that fits on a node now; the workloads that
request most; its nodes, each with the requested resources and the settings that it lacks;
and recent events.

Free are the resources left on nodes that accept new pods. Lost are the resources left on
nodes that are cordoned, not ready, being deleted, or have taints other than the pool's.

Free devices are those that no ResourceClaim has, on nodes that accept new pods.

Used are the resources that the nodes use according to metrics.k8s.io, whatever pods
request. It is a lower bound if some nodes have no metrics of the last ten minutes.`,
		Example: `  kubectl tide pools describe worker
  kubectl tide pools describe worker -o yaml`,
		Args:              cmdutil.SomeNames,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "show all nodes of a large pool, not only the fullest")
	o.output.Shows(view.PoolDetail{}, []view.PoolDetail{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *describeOptions) Complete(_ *cobra.Command, args []string) (err error) {
	o.names, err = poolKind.Names(args)
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
	details, pools, err := o.details(ctx, c)
	if err != nil {
		return err
	}
	done, err := cmdutil.PrintDetails(&o.output, o.Console.Out, details, func(detail view.PoolDetail) error {
		return printDetail(o.Console.Out, detail, o.all, o.Now(), o.Console.Screen)
	})
	if done || err != nil {
		return err
	}
	return o.NoteOutdated(ctx, c, unobserved(pools, o.Now()))
}

// details reads the pools named in the arguments, and returns the pools and the details to print.
func (o *describeOptions) details(ctx context.Context, c client.Client) (details []view.PoolDetail, pools []tidekeeperv1.NodePool, err error) {
	facts := make([]view.PoolFacts, len(o.names))
	for i, name := range o.names {
		if facts[i], err = gatherPool(ctx, o.Env, c, name); err != nil {
			return nil, nil, err
		}
	}
	metrics, err := ReadMetrics(ctx, o.Env, c)
	if err != nil {
		return nil, nil, err
	}
	devices, noDevices, err := poolDevices(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range facts {
		f.Devices, f.NoDevices = devices, noDevices
		f.Used, f.NoMetrics = metrics.UsedBy(view.MembersOf(lists.Pointers(f.Members), labels.Everything()), o.Now())
		detail, err := view.PoolDetailOf(f, o.Now())
		if err != nil {
			return nil, nil, err
		}
		details, pools = append(details, detail), append(pools, *f.Pool)
	}
	return details, pools, nil
}

// gatherPool reads the objects that the command describe shows for a pool, except the usage of the
// pool's nodes. It omits pods or events if the user is not allowed to read them.
func gatherPool(ctx context.Context, e *cmdutil.Env, c client.Client, name string) (view.PoolFacts, error) {
	f := view.PoolFacts{Pool: &tidekeeperv1.NodePool{}}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, f.Pool); err != nil {
		return f, cmdutil.AboutKind(err, poolKind.Name, "", name)
	}
	selector, err := plan.Selector(f.Pool)
	if err != nil {
		return f, err
	}
	list := &corev1.NodeList{}
	if err := c.List(ctx, list, cmdutil.FromCache(), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return f, err
	}
	f.Members = list.Items
	if f.Pods, err = podsByNode(ctx, c, f.Members); apierrors.IsForbidden(err) {
		e.Console.Note("the nodes' levels are left out: " + err.Error())
	} else if err != nil {
		return f, err
	}
	var known bool
	f.Events, known, err = cmdutil.Events(ctx, e, c, poolKind.Name, name)
	f.NoEvents = !known
	return f, err
}

func podsByNode(ctx context.Context, c client.Client, members []corev1.Node) (map[string][]*corev1.Pod, error) {
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Name
	}
	pods, err := cmdutil.PodsOf(ctx, c, names)
	if err != nil {
		return nil, err
	}
	byNode := map[string][]*corev1.Pod{}
	for i := range pods {
		byNode[pods[i].Spec.NodeName] = append(byNode[pods[i].Spec.NodeName], &pods[i])
	}
	return byNode, nil
}

// printDetail prints the details of a pool. If all is not set and the pool is large, it prints only
// the nodes with the highest requested percentages.
func printDetail(out io.Writer, d view.PoolDetail, all bool, now time.Time, s term.Screen) error {
	fact := func(name, text string) { fmt.Fprintf(out, "%-13s%s\n", name, text) }
	fact("Name:", d.Name)
	fact("Status:", s.Paint(cmdutil.ColorOf(d.Status.Severity), d.Status.Reason)+", "+term.Printable(d.Status.Message))
	fact("Members:", "nodes with "+term.Printable(d.Selector))
	fact("Nodes:", fmt.Sprintf("%d of %d ready", d.ReadyNodes, d.Nodes))
	if err := printLevels(out, d.Levels, s); err != nil {
		return err
	}
	if used := d.UsedLine(); used != "" {
		fact("Used:", term.Printable(used))
	}
	for _, line := range roomLines(d) {
		fact(line[0], term.Printable(line[1]))
	}
	for _, answer := range []struct {
		name string
		is   *view.Status
	}{{"Headroom:", d.Headroom}, {"Drainable:", d.Drainable}} {
		if is := answer.is; is != nil {
			fact(answer.name, s.Paint(cmdutil.ColorOf(is.Severity), is.Reason)+", "+term.Printable(is.Message))
		}
	}
	settings := d.Settings
	if len(settings) == 0 {
		settings = []string{"nothing"}
	}
	for i, text := range settings {
		fact(onFirst(i, "Asks for:"), term.Printable(text))
	}
	if d.Conflicted && d.Conflict != d.Status.Message {
		fact("Conflict:", s.Paint(term.Red, term.Printable(d.Conflict)))
	}

	fmt.Fprintln(out)
	if len(d.Members) == 0 {
		fmt.Fprintln(out, "No nodes.")
	} else if err := printMembers(out, d.Members, all, now, s); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if d.Events == nil {
		fmt.Fprintln(out, "Recent events are not known.")
		return nil
	}
	if len(d.Events) == 0 {
		fmt.Fprintln(out, "No recent events.")
		return nil
	}
	return eventsTable(d.Events, now).WriteTo(out, s)
}

// printLevels prints, for each resource of a pool, the percentage of the capacity that pods
// request, with a bar and the amounts.
func printLevels(out io.Writer, levels []view.Level, s term.Screen) error {
	if len(levels) == 0 {
		return nil
	}
	t := &term.Table{Bars: levelBars[1:], NoHeader: true, Columns: []term.Column{{Least: 10}, {}, {}, {}}}
	for i, l := range levels {
		percent := levelCell(levels, corev1.ResourceName(l.Resource))
		percent.Text = fmt.Sprintf("%4s", percent.Text) // Pad to a fixed width, to align percentages with and without a bar.
		t.Rows = append(t.Rows, []term.Cell{term.Text(onFirst(i, "Requested:")), term.Text(l.Resource), percent, term.Text(l.Amount())})
	}
	return t.WriteTo(out, s)
}

// onFirst returns the given name for the first line of a list (i is 0), and "" for the other lines.
func onFirst(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

// eventsTable returns a table with a row for each event.
func eventsTable(events []view.Event, now time.Time) *term.Table {
	t := &term.Table{Columns: []term.Column{{Header: "AGE"}, {Header: "TYPE", Drop: 1}, {Header: "REASON"}, {Header: "MESSAGE", Text: 30}}}
	for _, e := range events {
		kind := term.Text(e.Type)
		if e.Type == corev1.EventTypeWarning {
			kind.Color = term.Yellow
		}
		t.Rows = append(t.Rows, []term.Cell{term.Text(term.Ago(e.LastSeen, now)), kind, term.Text(e.Reason), term.Text(e.Message)})
	}
	return t
}
