// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// longestForecast is the maximum period that the command forecast can simulate, to limit its CPU
// time.
const longestForecast = 7 * 24 * time.Hour

// forecastOptions holds the flags of restarts forecast.
type forecastOptions struct {
	*cmdutil.Env
	allNamespaces bool
	ahead, assume cmdutil.Duration
	budget        budgetFlags
	output        cmdutil.DataOutput

	namespace string
	// settings holds the limits of the manager's restart budget for the simulation.
	settings view.Settings
}

// forecastOutput is the JSON and YAML output of restarts forecast: the forecast, and the settings
// from which it was computed.
type forecastOutput struct {
	forecast.Forecast `json:",inline"`
	Settings          forecastSettings `json:"settings"`
	// Defaults lists the flag names of the settings whose values are defaults, because neither a
	// flag nor the manager provides a value.
	Defaults []string `json:"defaults"`
	// Partial is set if the forecast excludes restarts in other namespaces, which the user is not
	// allowed to list.
	Partial bool `json:"partial,omitempty"`
}

type forecastSettings struct {
	MaxConcurrentRestarts int   `json:"maxConcurrentRestarts"`
	RestartNamespaceShare int   `json:"restartNamespaceShare"`
	RestartSlotAgeSeconds int64 `json:"restartSlotAgeSeconds"`
	AssumeDurationSeconds int64 `json:"assumeDurationSeconds"`
}

func newForecastCommand(e *cmdutil.Env) *cobra.Command {
	o := &forecastOptions{
		Env:    e,
		ahead:  cmdutil.Duration{Duration: 24 * time.Hour, Max: longestForecast},
		assume: cmdutil.Duration{Duration: assumedDuration, Max: 24 * time.Hour},
	}
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "When restarts will start, which ticks will be missed, and why",
		Long: `forecast simulates the manager's decisions and its restart budget: when each restart starts
and completes, how many wait, which ticks will be missed or skipped, and why. It begins with
the restarts in progress and the ticks that are waiting now.

Each restart is assumed to take as long as the last successful restart in its history, or,
without any, --assume-duration. Workloads are assumed to stay as they are: a paused workload
stays paused. Pods age, and only restarts replace them. If you may not list pods, their ages
are those that the manager last recorded. The results of the operator's queries are unknown:
they are assumed to hold nothing back. A rollout in progress completes as a restart would,
unless it has made no progress for its progressDeadlineSeconds: it stays as it is, and stderr
names it. Ticks of a time without a manager have the outcomes that a manager records that
starts now.
Among restarts that are due at the same instant, the manager may choose a different order.
The settings of the manager are read from its lease; flags override them. If the lease cannot
be read, the defaults are assumed, and the last line says so.

All namespaces share a budget, so all of them are simulated, even with -n. If you may not
list all namespaces, restarts elsewhere are not counted.

Exit codes: 0 nothing will be missed, 2 something will be missed, 1 an error, or those of
kubectl tide --help.`,
		Example: `  kubectl tide restarts forecast -A
  kubectl tide restarts forecast -n shop --for 8h --max-concurrent-restarts 5
  kubectl tide restarts forecast -A -o json | jq .summary`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show restarts in all namespaces")
	f.Var(&o.ahead, "for", "how far to look ahead, such as 24h or 2d; at most 7d")
	f.Var(&o.assume, "assume-duration", "assumed duration of restarts that have never succeeded")
	o.budget.addTo(f)
	o.output.Shows(forecastOutput{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *forecastOptions) Complete(_ *cobra.Command, _ []string) (err error) {
	o.namespace, err = o.Kubeconfig.Namespace(o.allNamespaces)
	return err
}

// Validate implements [cmdutil.Options].
func (o *forecastOptions) Validate() error {
	if err := o.budget.validate(); err != nil {
		return err
	}
	return o.output.Validate()
}

// Run implements [cmdutil.Options].
func (o *forecastOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	read, err := readWorld(ctx, o.Env, c, o.namespace)
	if err != nil {
		return err
	}
	o.settings = o.budget.settings(read.manager)
	f, err := read.forecast(ctx, o.settings, o.assume.Duration, o.Now().Add(o.ahead.Duration))
	if err != nil {
		return err
	}
	if err := o.print(f, read.partial); err != nil {
		return err
	}
	o.NoteManager(read.manager, read.unobserved, cmdutil.ThenWaits)
	if f.Summary.Missed > 0 {
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	}
	return nil
}
