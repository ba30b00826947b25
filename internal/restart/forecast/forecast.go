// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// Input holds the ScheduledRestarts and workloads, the limits, and the period of a forecast.
type Input struct {
	// Restarts lists the ScheduledRestarts of all namespaces, since all namespaces share a budget.
	Restarts []*tidekeeperv1.ScheduledRestart
	// Targets maps workloads to their current state. A workload that is not in Targets is assumed
	// to be healthy.
	Targets map[TargetKey]Target
	// Freezes maps each namespace to the freezes that apply to it.
	Freezes map[string][]period.Period

	Limits Limits
	// AssumedDuration is the assumed duration of restarts if the history of a ScheduledRestart has
	// no successful restart.
	AssumedDuration time.Duration

	// LeadingSince is the time since which the manager that makes the next decisions has been the
	// leader; zero if unknown. If no manager is running, it is Now.
	LeadingSince time.Time
	// Now and Until are the beginning and the end of the forecast, in whole seconds like all times
	// in the API.
	Now, Until time.Time

	// Namespace is the namespace whose ticks (scheduled times of restarts) are reported; "" means
	// all namespaces.
	Namespace string
	// MostListed is the maximum number of ticks (scheduled times) that are listed. It limits the
	// memory use, since tenants control the number of ticks.
	MostListed int
}

// Limits holds the manager's settings that affect a forecast.
type Limits struct {
	MaxConcurrent  int
	NamespaceShare int
	SlotAge        time.Duration
}

// Forecast holds the outcomes of the ticks (the scheduled times of restarts) in the period of a
// forecast.
type Forecast struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`

	Summary Summary `json:"summary"`
	// Minutes lists the minutes in which restarts start, in chronological order.
	Minutes []Minute `json:"minutes"`
	// Started lists the ticks (the scheduled times of restarts) whose restarts start during the
	// forecast or are in progress when it begins, ordered by start time.
	Started []Tick `json:"started"`
	// NotStarted lists the missed and skipped ticks (scheduled times), in the order in which they
	// are recorded.
	NotStarted []Tick `json:"notStarted"`
	// Waiting lists the ticks (scheduled times) whose restarts are due but have not started when
	// the forecast ends, ordered by namespace and name.
	Waiting []Tick `json:"waiting"`
	// Hanging lists the workloads whose rollout in progress is assumed never to complete, because
	// it makes no progress or waits for a user. They are ordered by the names of their
	// ScheduledRestarts.
	Hanging []Hanging `json:"hanging,omitempty"`
	// Problems describes the ScheduledRestarts with an invalid schedule or invalid windows.
	Problems []string `json:"problems,omitempty"`
	// ClosedByQuery is the number of ScheduledRestarts that a Prometheus query of the administrator
	// keeps from restarting when the forecast begins. Since future answers are unknown, the
	// forecast assumes that no query returns results.
	ClosedByQuery int `json:"closedByQuery,omitempty"`
}

// Summary holds the totals. Ticks that share a history entry are counted individually.
type Summary struct {
	Started int `json:"started"`
	Missed  int `json:"missed"`
	Skipped int `json:"skipped"`
	// Failed is the number of started restarts that fail.
	Failed int `json:"failed"`
	// InProgress is the number of restarts in progress when the forecast ends. Waiting is the
	// number of ScheduledRestarts whose restart is due at that time, but has not started.
	InProgress int `json:"inProgress"`
	Waiting    int `json:"waiting"`
	// Assumed is the number of started restarts whose duration is assumed.
	Assumed int `json:"assumed"`
	// Unlisted is the number of ticks that are not listed because of [Input.MostListed].
	Unlisted int `json:"unlisted,omitempty"`

	FirstStart     time.Time `json:"firstStart,omitzero"`
	LastCompletion time.Time `json:"lastCompletion,omitzero"`
}

// Hanging describes a workload whose rollout in progress is assumed never to complete. Message is
// the reason, such as "1 of 3 pods are updated".
type Hanging struct {
	Namespace string `json:"namespace"`
	Target    string `json:"target"`
	Message   string `json:"message"`
}

// Minute describes a minute of the forecast in which at least one restart starts.
type Minute struct {
	Time    time.Time `json:"time"` // the beginning of the minute
	Started int       `json:"started"`
	// Waiting is the number of ScheduledRestarts whose restart is due, but has not started at the
	// end of the minute.
	Waiting int `json:"waiting"`
}

// Tick describes the outcome of a tick, the scheduled time of a restart.
type Tick struct {
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	Target    string               `json:"target"`
	Tick      time.Time            `json:"tick"`
	Trigger   tidekeeperv1.Trigger `json:"trigger"`
	// Start and Completion are the start and completion times of the restart. Assumed is true if
	// its duration is assumed.
	Start      time.Time `json:"start,omitzero"`
	Completion time.Time `json:"completion,omitzero"`
	Assumed    bool      `json:"assumed,omitempty"`
	// Outcome is the outcome of the tick; "" if its restart has not ended when the forecast ends.
	// If the restart has not started either, Reason is the reason for which it waits.
	Outcome tidekeeperv1.Outcome `json:"outcome,omitempty"`
	Reason  string               `json:"reason,omitempty"`
	Message string               `json:"message,omitempty"`
	// EarlierTicks is the number of earlier ticks that share a history entry with this tick.
	EarlierTicks int `json:"earlierTicks,omitempty"`
}

// Run simulates the period of a forecast. It stops early if the context is cancelled.
//
// Run assumes that a manager runs all the time and decides without delay, and that
// ScheduledRestarts and workloads change only through restarts. Each restart succeeds, and takes as
// long as the last successful restart of the same ScheduledRestart. A rollout in progress takes as
// long as a restart. A workload whose rollout has made no progress for longer than its progress
// deadline is assumed to be stuck, even if it is restarted. If several ticks are due at the same
// instant, the real manager may start their restarts in another order.
func Run(ctx context.Context, in Input) Forecast {
	s := newSimulation(&in)
	s.addAll()
	for ctx.Err() == nil && s.step() {
	}
	s.explain()
	return s.report.finish(s.objects)
}
