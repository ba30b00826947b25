// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/cli/freezes"
	"tidekeeper.dev/tidekeeper/internal/cli/term"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/scale"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// gatesOptions are those of restarts gates.
type gatesOptions struct {
	historyOptions
	budget budgetFlags
}

func newGatesCommand(e *cmdutil.Env) *cobra.Command {
	o := &gatesOptions{historyOptions: historyOptions{Env: e}}
	cmd := &cobra.Command{
		Use:   "gates NAME | TYPE/NAME",
		Short: "Whether a restart would be started now, and what is in its way",
		Long: `gates shows everything that must allow a restart before it is started, open or closed,
in the order in which a person has to open it: the schedule, the workload and its update
strategy, the freezes, the windows, those that come first, the health of the workload,
the queries of the manager's operator, and a slot of the budget. A restart that is requested
now needs all of them but the schedule.

Only the manager can ask those queries, and it does so when a restart is ready to start: the
gate is shown as closed while a restart waits for it, with what the query has said.

The settings of the manager cannot be read from the cluster: give those of the budget as
flags if they are not the defaults. Pods of a DaemonSet on nodes that are not ready count
here, while the manager does not wait for them.

Exit codes: 0 it would be started, 2 it would not, 1 an error, or those of kubectl tide
--help.`,
		Example: `  kubectl tide restarts gates web -n shop
  kubectl tide restarts gates deployment/web -o json | jq '.gates[] | select(.open | not)'`,
		Args:              cmdutil.OneName,
		ValidArgsFunction: e.CompleteOne(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.budget.addTo(cmd.Flags())
	o.output.AddTo(cmd)
	return cmd
}

// Validate is part of [cmdutil.Options].
func (o *gatesOptions) Validate() error {
	if err := o.budget.validate(); err != nil {
		return err
	}
	return o.output.Validate()
}

// Run is part of [cmdutil.Options].
func (o *gatesOptions) Run(ctx context.Context) error {
	r, err := o.read(ctx)
	if err != nil {
		return err
	}
	c, err := o.Client()
	if err != nil {
		return err
	}
	in := decision.Input{Restart: r, Offset: view.OffsetOf(r), Now: o.Now()}
	in.Ticks, in.Windows, in.Invalid = decision.ParseSchedule(&r.Spec)
	if err := readTarget(ctx, c, r, &in); err != nil {
		return err
	}
	if err := o.readFreezes(ctx, c, &in); err != nil {
		return err
	}
	if err := readOrder(ctx, c, &in); err != nil {
		return err
	}
	slots, err := o.budgetGate(ctx, c, r)
	if err != nil {
		return err
	}
	out := view.GatesOf(in, slots)
	if err := o.print(out); err != nil {
		return err
	}
	if err := o.NoteNoLeader(ctx, c); err != nil {
		return err
	}
	if !out.Starts {
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	}
	return nil
}

// readFreezes reads the freezes that are about the namespace, as far as the user may.
func (o *gatesOptions) readFreezes(ctx context.Context, c client.Client, in *decision.Input) error {
	periods, unknown, err := freezes.Read(ctx, c, []string{in.Restart.Namespace}, in.Now)
	if unknown != "" {
		o.Note("note: " + unknown)
	}
	in.Freezes = periods[in.Restart.Namespace]
	return err
}

// readOrder reads those that a ScheduledRestart comes after.
func readOrder(ctx context.Context, c client.Client, in *decision.Input) error {
	return in.ReadOrder(func(name string) (*tidekeeperv1.ScheduledRestart, error) {
		other := &tidekeeperv1.ScheduledRestart{}
		err := c.Get(ctx, client.ObjectKey{Namespace: in.Restart.Namespace, Name: name}, other)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return other, err
	})
}

func (o *gatesOptions) print(out view.Gates) error {
	if done, err := o.output.Print(o.Out, out); done {
		return err
	}
	if err := o.Write(gatesTable(out.Gates)); err != nil {
		return err
	}
	says := "A restart that is requested now would be started."
	if !out.Starts {
		says = "A restart that is requested now would have to wait."
	}
	fmt.Fprintln(o.Out, "\n"+says)
	return nil
}

// readTarget reads the workload.
func readTarget(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart, in *decision.Input) (err error) {
	if _, unknown := workload.Get(r.Spec.TargetRef); unknown != nil && decision.Evicts(r) {
		return scale.Read(ctx, c, r.Namespace, r.Spec.TargetRef, in)
	}
	in.Target, in.Unserved, err = targetOf(ctx, c, r)
	return err
}

// targetOf returns the state of the workload, nil if it does not exist, and whether the cluster
// does not serve its kind.
func targetOf(ctx context.Context, c client.Client, r *tidekeeperv1.ScheduledRestart) (state *workload.State, unserved bool, err error) {
	kind, err := workload.Get(r.Spec.TargetRef)
	if err != nil {
		return nil, false, err
	}
	object := kind.New()
	err = c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.TargetRef.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		// So is the answer if the cluster does not serve the kind. A list shows which it is.
		err := c.List(ctx, newList(kind), client.InNamespace(r.Namespace), client.Limit(1))
		return nil, apierrors.IsNotFound(err), nil
	case err != nil:
		return nil, false, fmt.Errorf("get %s %s: %w", kind.Kind, r.Spec.TargetRef.Name, err)
	}
	state, err = kind.State(object)
	return state, false, err
}

// budgetGate counts the slots that restarts use, in all namespaces that the user may list.
func (o *gatesOptions) budgetGate(ctx context.Context, c client.Client, of *tidekeeperv1.ScheduledRestart) (decision.Gate, error) {
	var slots view.Slots
	only, err := inNamespaces(of.Namespace, func(namespace string) error {
		slots = view.Slots{Of: of, MaxConcurrent: o.budget.maxConcurrent, NamespaceShare: o.budget.namespaceShare, SlotAge: o.budget.slotAge.Duration}
		return cmdutil.EachPage(ctx, c, func() *tidekeeperv1.ScheduledRestartList { return &tidekeeperv1.ScheduledRestartList{} }, func(page *tidekeeperv1.ScheduledRestartList) {
			for i := range page.Items {
				slots.Add(&page.Items[i], o.Now())
			}
		}, client.InNamespace(namespace))
	})
	where := ""
	if only != "" {
		where = "; those of other namespaces are not counted, as you may not list them"
	}
	if err != nil {
		return decision.Gate{}, cmdutil.AboutKind(err, restartKind.Name, of.Namespace, "")
	}
	return slots.Gate(where), nil
}

func gatesTable(gates []decision.Gate) *term.Table {
	t := &term.Table{Columns: []term.Column{{Header: "GATE", Name: true}, {Header: "STATE"}, {Header: "REASON", Drop: 2}, {Header: "MESSAGE", Text: 20, Drop: 1}}}
	for _, g := range gates {
		state := term.Painted(cmdutil.ColorOf(view.Good), "open")
		if !g.Open {
			state = term.Painted(cmdutil.ColorOf(view.Bad), "closed")
		}
		t.Rows = append(t.Rows, []term.Cell{term.Text(string(g.Name)), state, term.Text(g.Reason), term.Text(g.Message)})
	}
	return t
}
