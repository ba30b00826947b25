// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Condition types of a ScheduledRestart. They mean what kstatus means by them.
const (
	// ConditionReady: the schedule runs, or is suspended on purpose. Its reason
	// is the STATUS column of kubectl get scheduledrestarts.
	ConditionReady = "Ready"
	// ConditionReconciling: a restart is under way or waits for something.
	// Present only while it is true.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: nothing gets better until somebody changes something.
	// Present only while it is true.
	ConditionStalled = "Stalled"
)

// Reasons of the condition Ready, and of ticks that did not succeed.
const (
	// ReasonScheduled: the next tick is waited for. Ready.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended: spec.suspend is true. Ready. A tick: it was due when the
	// schedule was suspended.
	ReasonSuspended = "Suspended"
	// ReasonRestarting: a restart is under way. Ready.
	ReasonRestarting = "Restarting"
	// ReasonInvalidSchedule: schedule or time zone cannot be used. Not ready.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonFailureLimit: so many restarts in a row have failed that the
	// schedule has stopped until the spec is edited. Not ready.
	ReasonFailureLimit = "FailureLimit"
	// ReasonTargetNotFound: there is no such workload. Not ready; the reason of
	// a tick too.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonStrategyOnDelete: the workload's update strategy rolls nothing. Not
	// ready; the reason of a skipped tick.
	ReasonStrategyOnDelete = "StrategyOnDelete"

	// The gates: a tick is due and waits. Ready; the reason of a tick too, if
	// it was missed for it.
	ReasonTargetPaused    = "TargetPaused"
	ReasonTargetRolling   = "TargetRolling"
	ReasonTargetUnhealthy = "TargetUnhealthy"
	ReasonBudget          = "Budget"

	// ReasonAlreadyRestarted: the template was restarted for the tick, or
	// later, before it was started. Skipped.
	ReasonAlreadyRestarted = "AlreadyRestarted"
	// ReasonSuperseded: a later tick was due too. Missed, or skipped if one
	// restart served both a request and a tick.
	ReasonSuperseded = "Superseded"
	// ReasonDeadlineExceeded: no manager ran before the deadline. Missed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonProgressDeadline: the Deployment's own progress deadline. Failed.
	ReasonProgressDeadline = "ProgressDeadlineExceeded"
	// ReasonTimeout: spec.progressDeadlineSeconds. Failed.
	ReasonTimeout = "Timeout"
	// ReasonReverted: somebody took the restart back while it was rolled out.
	// Failed.
	ReasonReverted = "Reverted"
)

// Reasons of events on a ScheduledRestart.
const (
	// One of these tells the outcome of every tick.
	EventSucceeded = "RestartSucceeded"
	EventFailed    = "RestartFailed"
	EventSkipped   = "RestartSkipped"
	EventMissed    = "RestartMissed"
	// EventInvalidRequest: the annotation that asks for a restart now is wrong.
	EventInvalidRequest = "InvalidRequest"
	// EventReconcileFailed: something went wrong that is tried again.
	EventReconcileFailed = "ReconcileFailed"
)

// readyReasons are the reasons of the condition Ready.
var readyReasons = []string{
	ReasonScheduled, ReasonSuspended, ReasonRestarting,
	ReasonTargetPaused, ReasonTargetRolling, ReasonTargetUnhealthy, ReasonBudget,
	ReasonInvalidSchedule, ReasonFailureLimit, ReasonTargetNotFound, ReasonStrategyOnDelete,
}

// tickReasons are the reasons of each outcome of a tick.
var tickReasons = map[tidekeeperv1.Outcome][]string{
	tidekeeperv1.OutcomeSucceeded: {""},
	tidekeeperv1.OutcomeFailed:    {ReasonTimeout, ReasonProgressDeadline, ReasonTargetNotFound, ReasonReverted},
	tidekeeperv1.OutcomeSkipped: {
		ReasonSuspended, ReasonInvalidSchedule, ReasonFailureLimit, ReasonStrategyOnDelete, ReasonAlreadyRestarted, ReasonSuperseded,
	},
	tidekeeperv1.OutcomeMissed: {
		ReasonTargetNotFound, ReasonTargetPaused, ReasonTargetRolling, ReasonTargetUnhealthy, ReasonBudget,
		ReasonDeadlineExceeded, ReasonSuperseded,
	},
}

// metrics of the controller.
type metrics struct {
	ticks     *prometheus.CounterVec
	lateness  prometheus.Histogram
	duration  *prometheus.HistogramVec
	schedules *tally
}

// RegisterMetrics registers the metrics of this package with nothing behind them,
// for whoever lists them.
func RegisterMetrics(registry prometheus.Registerer) error {
	_, err := newMetrics(registry, newBudget(0, 0))
	return err
}

func newMetrics(registry prometheus.Registerer, b *budget) (*metrics, error) {
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}
	}
	m := &metrics{
		ticks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_restart_ticks_total",
			Help: "Ticks that were decided, by outcome (Succeeded, Failed, Skipped, Missed) and reason.",
		}, []string{"outcome", "reason"}),
		schedules: newTally(prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidekeeper_restart_schedules",
			Help: "ScheduledRestarts by the reason of their condition Ready, which is the STATUS column of kubectl get scheduledrestarts. Counted by the leader; a standby has none.",
		}, []string{"reason"})),
		lateness: prometheus.NewHistogram(histogram("tidekeeper_restart_start_lateness_seconds",
			"From the time at which a restart was due to the time at which it was sent to its target.",
			[]float64{.01, .05, .1, .5, 1, 5, 30, 120, 600, 3600})),
		duration: prometheus.NewHistogramVec(histogram("tidekeeper_restart_duration_seconds",
			"From the start of a restart to its end, by kind of the target and outcome.",
			[]float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600}), []string{"kind", "outcome"}),
	}
	// A series that begins with its first tick would hide that one from rate().
	for outcome, reasons := range tickReasons {
		for _, reason := range reasons {
			m.ticks.WithLabelValues(string(outcome), reason)
		}
	}
	slots := func(state, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tidekeeper_restart_" + state, Help: help,
		}, func() float64 { return float64(value()) })
	}
	for _, c := range []prometheus.Collector{
		m.ticks, m.lateness, m.duration, m.schedules.gauge,
		slots("active", "Restarts that are under way, which is how much of the budget is used.", func() int { used, _ := b.usage(); return used }),
		slots("waiting_for_budget", "Restarts that are due and wait for the budget.", func() int { _, waiting := b.usage(); return waiting }),
		slots("budget", "How many restarts may be under way at once.", func() int { return b.limit }),
	} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
