// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/maintenance/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// forecastOptions holds the flags and arguments of maintenance forecast.
type forecastOptions struct {
	*cmdutil.Env
	perNode cmdutil.Duration
	output  cmdutil.DataOutput

	names []string
}

// forecastOutput is the forecast of a maintenance round (the maintenance of every selected node,
// once), with the values from which it was computed.
type forecastOutput struct {
	Name string `json:"name"`
	// Begun is true if the forecast is about the round in progress, and false if it is about the
	// next round, which begins at From. Over is true if no round is in progress, and no round will
	// begin.
	Begun bool       `json:"begun"`
	Over  bool       `json:"over,omitempty"`
	From  *time.Time `json:"from,omitempty"`
	// Held is the reason why no drain of a node may begin now. It is nil if drains may begin.
	Held *view.Status `json:"held,omitempty"`
	// PerNodeSeconds is the duration of the maintenance of a node, or 0 if it is unknown. It is the
	// value of the flag --per-node or, by default, the median over the nodes whose maintenance is
	// complete. MeasuredNodes is the number of these nodes.
	PerNodeSeconds int64 `json:"perNodeSeconds"`
	MeasuredNodes  int   `json:"measuredNodes"`
	// Limit is the maximum number of nodes that may be unavailable at a time. Unavailable lists the
	// names of the nodes that count towards the limit now.
	Limit       int      `json:"limit"`
	Unavailable []string `json:"unavailable,omitempty"`

	forecast.Forecast `json:",inline"`
}

func newForecastCommand(e *cmdutil.Env) *cobra.Command {
	o := &forecastOptions{Env: e, perNode: cmdutil.Duration{Max: 7 * 24 * time.Hour}}
	cmd := &cobra.Command{
		Use:   "forecast [NAME...]",
		Short: "When a round of maintenance will be through, with its windows and limits",
		Long: `forecast simulates the round in progress, or the next one: when the next drain begins, when
the round ends, and how many nodes begin in each window. It counts the windows, the schedule,
the limits and the order of pools, and Freezes that are known now.

Each node is assumed to take as long as the median of the nodes that are done in this round,
from the beginning of its drain until it is in use again. Before the first one is done, the
time is not known, and neither is the end: --per-node says it. Nodes that are unavailable for
other reasons are assumed to stay so, and no drain is assumed to fail or to wait for pods
without a place elsewhere. A suspended or stopped round is simulated as if it went on now.

Exit codes: 0 all rounds end before the next round begins, or their end is not known, 2 one
does not, 1 an error, or those of kubectl tide --help.`,
		Example: `  kubectl tide maintenance forecast
  kubectl tide maintenance forecast reboot --per-node 15m
  kubectl tide maintenance forecast reboot -o json | jq '.[0].end'`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	cmd.Flags().Var(&o.perNode, "per-node", "assumed time that a node takes, such as 15m (default measured)")
	o.output.Shows([]forecastOutput{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *forecastOptions) Complete(_ *cobra.Command, args []string) (err error) {
	o.names, err = maintenanceKind.Names(args)
	return err
}

// Validate implements [cmdutil.Options].
func (o *forecastOptions) Validate() error { return o.output.Validate() }

// Run implements [cmdutil.Options].
func (o *forecastOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	items, err := o.items(ctx, c)
	if err != nil {
		return err
	}
	w, err := readWorld(ctx, o.Env, c, items)
	if err != nil {
		return err
	}
	forecasts, late := []forecastOutput{}, false
	for i := range items {
		f, err := o.forecast(w, &items[i])
		if err != nil {
			return err
		}
		forecasts = append(forecasts, f)
		late = late || f.Late
	}
	if done, err := o.output.Print(o.Console.Out, forecasts); err != nil {
		return err
	} else if !done {
		if err := o.print(forecasts); err != nil {
			return err
		}
	}
	m, err := cmdutil.ManagerIfAllowed(ctx, o.Env, c)
	if err != nil {
		return err
	}
	if o.NoteManager(m, unobserved(items, o.Now()), thenNotDrained); len(items) > 0 {
		o.NoteController(m, ControllerName, thenNotDrained)
	}
	if late {
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	}
	return nil
}

// items returns the NodeMaintenances named in the arguments, or all NodeMaintenances if there are
// no arguments.
func (o *forecastOptions) items(ctx context.Context, c client.Client) ([]tidekeeperv1.NodeMaintenance, error) {
	if len(o.names) > 0 {
		return readNamed(ctx, c, o.names)
	}
	list, err := listMaintenances(ctx, c)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// forecast returns the forecast of the current or next round of a NodeMaintenance.
func (o *forecastOptions) forecast(w *world, m *tidekeeperv1.NodeMaintenance) (forecastOutput, error) {
	now := o.Now()
	round, err := view.RoundOf(w.facts(m, now), now)
	if err != nil {
		return forecastOutput{}, fmt.Errorf("%s: %w", displayName(m), err)
	}
	in := round.Input
	f := forecastOutput{Name: m.Name, Begun: round.Begun, Over: round.Over, Held: round.Held, Limit: in.Limit, Unavailable: round.Unavailable}
	in.PerNode, f.MeasuredNodes = forecast.PerNode(m.Status.Nodes)
	if o.perNode.Duration > 0 {
		in.PerNode = o.perNode.Duration
	}
	f.PerNodeSeconds = int64(in.PerNode / time.Second)
	if !in.From.IsZero() {
		f.From = &in.From
	}
	f.Forecast = forecast.Run(in)
	return f, nil
}
