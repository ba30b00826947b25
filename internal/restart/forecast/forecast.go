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
	// Restarts are the ScheduledRestarts of all namespaces, as they share a budget. They
	// are changed.
	Restarts []*tidekeeperv1.ScheduledRestart
	// Targets are the workloads. A workload that is not among them is taken to be healthy.
	Targets map[TargetKey]Target
	// Freezes are the freezes of each namespace.
	Freezes map[string][]period.Period

	Limits Limits
	// AssumedDuration is how long a restart takes if there is no successful restart in the history.
	AssumedDuration time.Duration

	// Now and Until are in whole seconds, as all times of the API are.
	Now, Until time.Time

	// Namespace is the namespace whose ticks are reported; "" means all of them.
	Namespace string
	// MostListed is how many ticks are listed in all. The number of ticks is up to the
	// tenants, the memory that they take is not.
	MostListed int
}

// Limits are the manager's settings that a forecast depends on.
type Limits struct {
	MaxConcurrent  int
	NamespaceShare int
	SlotAge        time.Duration
}

// Forecast has the outcomes of the ticks between two times. Lists are in the order in which
// things happen.
type Forecast struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`

	Summary Summary `json:"summary"`
	// Minutes are the minutes in which restarts start.
	Minutes []Minute `json:"minutes"`
	// Started are the ticks for which a restart is started, or is in progress at first.
	Started []Tick `json:"started"`
	// NotStarted are the ticks that are missed or skipped.
	NotStarted []Tick `json:"notStarted"`
	// Waiting are the ticks that are due at the end and not decided by then.
	Waiting []Tick `json:"waiting"`
	// Problems are schedules that cannot be used.
	Problems []string `json:"problems,omitempty"`
	// ClosedByQuery is how many wait at first because of a query of the manager's operator. What
	// the queries will say is not known: all are played as if they said nothing.
	ClosedByQuery int `json:"closedByQuery,omitempty"`
}

// Summary has the numbers. Ticks that are recorded together count each.
type Summary struct {
	Started int `json:"started"`
	Missed  int `json:"missed"`
	Skipped int `json:"skipped"`
	// Failed are the started restarts that fail.
	Failed int `json:"failed"`
	// InProgress and Waiting are the restarts in progress and the ticks that wait at the end.
	InProgress int `json:"inProgress"`
	Waiting    int `json:"waiting"`
	// Assumed is how many of the started restarts take an assumed time.
	Assumed int `json:"assumed"`
	// Unlisted is how many ticks are counted, and not listed.
	Unlisted int `json:"unlisted,omitempty"`

	FirstStart     time.Time `json:"firstStart,omitzero"`
	LastCompletion time.Time `json:"lastCompletion,omitzero"`
}

// Minute is a minute in which restarts start.
type Minute struct {
	Time    time.Time `json:"time"` // its beginning
	Started int       `json:"started"`
	// Waiting is how many ticks are due and not started at its end.
	Waiting int `json:"waiting"`
}

// Tick is the outcome of a tick, of a schedule or requested.
type Tick struct {
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	Target    string               `json:"target"`
	Tick      time.Time            `json:"tick"`
	Trigger   tidekeeperv1.Trigger `json:"trigger"`
	// Start and Completion are the times of its restart; Assumed says that it takes an assumed
	// time.
	Start      time.Time `json:"start,omitzero"`
	Completion time.Time `json:"completion,omitzero"`
	Assumed    bool      `json:"assumed,omitempty"`
	// Outcome is empty for a tick that is not decided at the end. What it waits for is then
	// the reason.
	Outcome tidekeeperv1.Outcome `json:"outcome,omitempty"`
	Reason  string               `json:"reason,omitempty"`
	Message string               `json:"message,omitempty"`
	// EarlierTicks is how many ticks before it are recorded with it.
	EarlierTicks int `json:"earlierTicks,omitempty"`
}

// Run plays the time from now until the end, or until the context ends.
//
// All of these are assumed: a manager decides all the time and without delay; no object and
// no workload is changed by anything but restarts; each restart takes as long as the last restart
// of its object that succeeded, and succeeds; a rollout in progress completes as a restart
// would. Among ticks that are due at the same instant, the manager may choose others than
// the forecast to start first.
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
