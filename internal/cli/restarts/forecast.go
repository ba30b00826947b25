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

// longestForecast limits the simulated time, and with it the CPU time of the command.
const longestForecast = 7 * 24 * time.Hour

// forecastOptions are the flags of restarts forecast.
type forecastOptions struct {
	*cmdutil.Env
	allNamespaces bool
	ahead, assume cmdutil.Duration
	budget        budgetFlags
	output        cmdutil.DataOutput

	namespace string
	// settings are the manager's restart budget.
	settings view.Settings
}

// forecastOutput is the forecast for -o json and -o yaml, with the settings that it depends on.
type forecastOutput struct {
	forecast.Forecast `json:",inline"`
	Settings          forecastSettings `json:"settings"`
	// Defaults are the flags of the settings that are neither given nor published by the manager.
	Defaults []string `json:"defaults"`
	// Partial is set if restarts in other namespaces are not counted.
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
		Short: "What will start when, and what will be missed, and why",
		Long: `forecast plays the coming time through the decisions and the restart budget of the
manager: when each restart starts and completes, how many wait, which ticks will be
missed or skipped, and why. Restarts in progress and ticks that wait now are part of it.

Each restart takes as long as the last one in its history that succeeded, or, without
one, --assume-duration. Workloads stay as they are now: one that is paused stays paused.
Pods become older and are replaced by restarts only. Without the right to list them, they
are as old as the manager last knew.
What queries of the manager's operator will say is not known: they are taken to say nothing.
A rollout in progress completes as a restart would. The manager may start others first
of those that are due at the same instant. Its settings are those that it has published on its
lease; flags play others. Where the lease cannot be read they are taken to be the defaults, and
the last line says so.

All namespaces share one budget, so that all of them are played, also with -n. Without
the right to list them, what is restarted elsewhere is not counted.

Exit codes: 0 nothing will be missed, 2 something will, 1 an error, or those of kubectl
tide --help.`,
		Example: `  kubectl tide restarts forecast -A
  kubectl tide restarts forecast -n shop --for 8h --max-concurrent-restarts 5
  kubectl tide restarts forecast -A -o json | jq .summary`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show those of all namespaces")
	f.Var(&o.ahead, "for", "how far to look ahead, such as 24h or 2d; at most 7d")
	f.Var(&o.assume, "assume-duration", "how long a restart takes that has never succeeded")
	o.budget.addTo(f)
	o.output.AddTo(cmd)
	return cmd
}

// Complete is part of [cmdutil.Options].
func (o *forecastOptions) Complete(_ *cobra.Command, _ []string) (err error) {
	o.namespace, err = o.Kubeconfig.Namespace(o.allNamespaces)
	return err
}

// Validate is part of [cmdutil.Options].
func (o *forecastOptions) Validate() error {
	if err := o.budget.validate(); err != nil {
		return err
	}
	return o.output.Validate()
}

// Run is part of [cmdutil.Options].
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
