// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// Input is the input of a forecast.
type Input struct {
	// Restarts has the ScheduledRestarts of all namespaces, as they share a budget. Run modifies them.
	Restarts []*tidekeeperv1.ScheduledRestart
	// Targets has the workloads. A workload that is missing here is assumed to be healthy.
	Targets map[TargetKey]Target
	// Freezes has the freezes of each namespace.
	Freezes map[string][]period.Period

	Limits Limits
	// AssumedDuration is the assumed duration of a restart without a successful restart in the history.
	AssumedDuration time.Duration

	// Now and Until are in whole seconds, as all times of the API are.
	Now, Until time.Time

	// Namespace is the namespace whose ticks are reported; "" means all of them.
	Namespace string
	// MostListed is the maximum number of listed ticks. It bounds the memory, as tenants control the number
	// of ticks.
	MostListed int
}

// Limits are the manager's settings that a forecast depends on.
type Limits struct {
	MaxConcurrent  int
	NamespaceShare int
	SlotAge        time.Duration
}

// Forecast has the outcomes of the ticks between two times. Its lists are in chronological order.
type Forecast struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`

	Summary Summary `json:"summary"`
	// Minutes has the minutes in which restarts start.
	Minutes []Minute `json:"minutes"`
	// Started has the ticks whose restart starts, or is already in progress at the beginning.
	Started []Tick `json:"started"`
	// NotStarted has the ticks that are missed or skipped.
	NotStarted []Tick `json:"notStarted"`
	// Waiting has the ticks that are due and undecided at the end.
	Waiting []Tick `json:"waiting"`
	// Problems describes schedules that cannot be used.
	Problems []string `json:"problems,omitempty"`
	// ClosedByQuery is the number of ScheduledRestarts that wait for a query of the administrator at the
	// beginning. Future answers are unknown: the forecast assumes that no query has a result.
	ClosedByQuery int `json:"closedByQuery,omitempty"`
}

// Summary has the totals. Ticks that are recorded together are counted individually.
type Summary struct {
	Started int `json:"started"`
	Missed  int `json:"missed"`
	Skipped int `json:"skipped"`
	// Failed is the number of started restarts that fail.
	Failed int `json:"failed"`
	// InProgress and Waiting are the numbers of restarts in progress and of waiting ticks at the end.
	InProgress int `json:"inProgress"`
	Waiting    int `json:"waiting"`
	// Assumed is the number of started restarts with an assumed duration.
	Assumed int `json:"assumed"`
	// Unlisted is the number of ticks that are counted but not listed.
	Unlisted int `json:"unlisted,omitempty"`

	FirstStart     time.Time `json:"firstStart,omitzero"`
	LastCompletion time.Time `json:"lastCompletion,omitzero"`
}

// Minute is a minute in which restarts start.
type Minute struct {
	Time    time.Time `json:"time"` // the beginning of the minute
	Started int       `json:"started"`
	// Waiting is the number of ticks that are due and not started at the end of the minute.
	Waiting int `json:"waiting"`
}

// Tick is the outcome of a tick of a schedule or of a request.
type Tick struct {
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	Target    string               `json:"target"`
	Tick      time.Time            `json:"tick"`
	Trigger   tidekeeperv1.Trigger `json:"trigger"`
	// Start and Completion are the times of the restart; Assumed is set if its duration is assumed.
	Start      time.Time `json:"start,omitzero"`
	Completion time.Time `json:"completion,omitzero"`
	Assumed    bool      `json:"assumed,omitempty"`
	// Outcome is empty for a tick that is undecided at the end. The reason then says why it waits.
	Outcome tidekeeperv1.Outcome `json:"outcome,omitempty"`
	Reason  string               `json:"reason,omitempty"`
	Message string               `json:"message,omitempty"`
	// EarlierTicks is the number of earlier ticks that are recorded with this tick.
	EarlierTicks int `json:"earlierTicks,omitempty"`
}

// Run simulates the time from now until the end, or until the context is cancelled.
//
// It assumes that a manager decides all the time and without delay; that objects and workloads change only
// through restarts; that each restart succeeds and takes as long as the last successful restart of its
// object; and that a rollout in progress completes like a restart. Among ticks that are due at the same
// instant, the manager may choose others to start first.
func Run(ctx context.Context, in Input) Forecast {
	s := newSimulation(&in)
	for _, restart := range in.Restarts {
		s.add(restart)
	}
	for ctx.Err() == nil && s.step() {
	}
	s.explain()
	return s.report.finish(s.objects)
}
