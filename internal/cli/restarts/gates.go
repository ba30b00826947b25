// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// gatesOptions holds the flags and arguments of restarts gates.
type gatesOptions struct {
	historyOptions
	budget budgetFlags
}

func newGatesCommand(e *cmdutil.Env) *cobra.Command {
	o := &gatesOptions{historyOptions: historyOptions{Env: e}}
	cmd := &cobra.Command{
		Use:   "gates NAME | TYPE/NAME",
		Short: "Whether a restart would start now, and if not, why",
		Long: `gates shows the conditions that must allow a restart before it starts, open or closed, in the
order in which to resolve them: the schedule, the workload and its update strategy, the
freezes, the windows, the restarts that must come first, the health of the workload, the
queries of the manager's operator, a restart in progress, and a slot of the budget. A restart
that is requested now needs all of them except the schedule. While no manager runs, the gate
Manager is closed.

Only the manager can run these queries, and it does so when a restart is ready to start: the
gate is shown as closed while a restart waits for a query, with the query's result.

The settings of the budget are read from the manager's lease; flags override them. If the
lease cannot be read, the defaults are assumed, and the gate says so. Pods of a DaemonSet on
nodes that are not ready count here, although the manager does not wait for them.

Exit codes: 0 the restart would start, 2 it would not, 1 an error, or those of kubectl tide
--help.`,
		Example: `  kubectl tide restarts gates web -n shop
  kubectl tide restarts gates deployment/web -o json | jq '.gates[] | select(.open | not)'`,
		Args:              cmdutil.OneName,
		ValidArgsFunction: e.Kubeconfig.CompleteOne(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.budget.addTo(cmd.Flags())
	o.output.Shows(view.Gates{}).AddTo(cmd)
	return cmd
}

// Validate implements [cmdutil.Options].
func (o *gatesOptions) Validate() error {
	if err := o.budget.validate(); err != nil {
		return err
	}
	return o.output.Validate()
}

// Run implements [cmdutil.Options].
func (o *gatesOptions) Run(ctx context.Context) error {
	r, err := o.read(ctx)
	if err != nil {
		return err
	}
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	reader, err := newGateReader(ctx, o.Env, c, r.Namespace, o.budget.settings)
	if err != nil {
		return err
	}
	out, err := reader.of(ctx, r)
	if err != nil {
		return err
	}
	var unobserved view.Unobserved
	unobserved.AddRestart(r, o.Now())
	if problem := view.Outdated(reader.manager, unobserved, o.Now()); problem != "" {
		out.CloseWithoutManager(problem)
	}
	if err := o.print(out); err != nil {
		return err
	}
	if !out.Starts {
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	}
	return nil
}

func (o *gatesOptions) print(out view.Gates) error {
	if done, err := o.output.Print(o.Console.Out, out); done {
		return err
	}
	t := gatesTable(out.Gates)
	if o.Console.Screen.Terminal && o.Console.Screen.Width > 0 && o.Console.Screen.Width < narrowScreen {
		t = wrapMessages(t, o.Console.Screen.Width)
	}
	if err := o.Console.Write(t); err != nil {
		return err
	}
	says := "A restart that is requested now would be started."
	if !out.Starts {
		says = "A restart that is requested now would have to wait."
	}
	fmt.Fprintln(o.Console.Out, "\n"+says)
	return nil
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

// narrowScreen is the screen width below which each message in the table of gates (start
// conditions) is wrapped into lines below its row. Messages must not be cut, because they contain
// the time at which the gate opens.
const narrowScreen = 80

// wrapMessages returns a copy of the table of gates (start conditions), in which each message (the
// last column) is wrapped into lines below its row.
func wrapMessages(t *term.Table, width int) *term.Table {
	const indent = "  "
	last := len(t.Columns) - 1
	narrow := &term.Table{Columns: t.Columns[:last]}
	for _, row := range t.Rows {
		narrow.Rows = append(narrow.Rows, row[:last])
		for _, line := range term.Wrap(row[last].Text, width-len(indent)) {
			narrow.Rows = append(narrow.Rows, []term.Cell{{Text: indent + line, Span: true}})
		}
	}
	return narrow
}
