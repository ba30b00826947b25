// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// Restart summarizes a ScheduledRestart.
type Restart struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Target    string `json:"target"`
	Schedule  string `json:"schedule"`
	TimeZone  string `json:"timeZone"`
	Status    Status `json:"status"`
	Failures  int32  `json:"failures"` // consecutive failures
	// LastTick is the last tick (scheduled time) with an outcome, and Outcome is its outcome.
	LastTick    *time.Time `json:"lastTick,omitempty"`
	Outcome     Outcome    `json:"outcome,omitzero"`
	LastSuccess *time.Time `json:"lastSuccess,omitempty"`
	// ActiveSince is the start time of the restart in progress.
	ActiveSince *time.Time `json:"activeSince,omitempty"`
	// NextStart is the time of the next start, including the offset that delays the start within
	// the spread. It is nil if no start is planned, or if a restart is in progress.
	NextStart *time.Time    `json:"nextStart,omitempty"`
	Offset    time.Duration `json:"-"`
	Spread    bool          `json:"-"`
	// ByTick is set if NextStart belongs to a tick of the schedule, and therefore has a deadline.
	ByTick bool `json:"-"`
	// Refused is the reason why the last eviction of the restart in progress was rejected. It is
	// empty if that eviction was not rejected, or if no restart is in progress.
	Refused string `json:"refused,omitempty"`
	// Frozen is the effect of a Freeze on the next restart. It is nil if no Freeze affects the
	// restart.
	Frozen *Frozen `json:"frozen,omitempty"`
	// Workload is the gate (start condition) of the next restart that is closed because of the
	// workload's current state. It is nil if no such gate is closed, or if Status already shows the
	// reason.
	Workload *decision.Gate `json:"workload,omitempty"`
	// AlsoBy lists the other ScheduledRestarts of the same workload.
	AlsoBy []string `json:"alsoBy,omitempty"`
}

// Frozen is the effect of a Freeze on a restart that becomes due while the Freeze is in force. The
// restart waits until the Freeze ends, or is missed if its deadline is earlier.
type Frozen struct {
	Freeze string    `json:"freeze"`
	Until  time.Time `json:"until"`
	Missed bool      `json:"missed,omitempty"`
}

// Text describes the effect of the Freeze by a phrase to append to the start time. The function
// moment formats a time. Text returns "" if there is no effect.
func (f *Frozen) Text(moment func(time.Time) string) string {
	switch {
	case f == nil:
		return ""
	case f.Missed:
		return ", missed by Freeze " + f.Freeze
	default:
		return ", held by Freeze " + f.Freeze + " until " + moment(f.Until)
	}
}

// AddFreezes adds the effect of the given Freezes, which apply to r's namespace, on the next
// restart.
func (shown *Restart) AddFreezes(r *tidekeeperv1.ScheduledRestart, freezes []period.Period, now time.Time) {
	if shown.NextStart == nil {
		return
	}
	due := *shown.NextStart
	at := due
	if at.Before(now) {
		at = now
	}
	_, windows, err := decision.ParseSchedule(&r.Spec)
	if err != nil {
		return
	}
	for p := period.InForce(freezes, at); p != nil; p = period.InForce(freezes, at) {
		shown.Frozen = &Frozen{Freeze: p.Name, Until: p.Until}
		opens, ok := windows.OpensAt(p.Until)
		if !ok {
			break
		}
		at = opens
	}
	if shown.Frozen != nil && shown.ByTick {
		shown.Frozen.Missed = at.After(due.Add(time.Duration(r.Spec.StartingDeadlineSeconds) * time.Second))
	}
}

// AddTarget sets the field Workload to the gate (start condition) that is closed because of the
// workload's current state. Like the forecast, and unlike the command `restarts gates`, it ignores
// whether nodes are ready.
func (shown *Restart) AddTarget(r *tidekeeperv1.ScheduledRestart, target forecast.Target, now time.Time) {
	if shown.NextStart == nil {
		return
	}
	for _, gate := range decision.Gates(decision.Input{Restart: r, Now: now, Target: forecast.Whole(target.State), Unserved: target.Unserved}) {
		if !gate.Open && (gate.Name == decision.GateTarget || gate.Name == decision.GateHealth) {
			if gate.Reason != shown.Status.Reason {
				shown.Workload = &gate
			}
			return
		}
	}
}

// Shared maps each workload, as namespace/kind/name, to the names of its ScheduledRestarts.
type Shared map[string][]string

// SharedTargets groups ScheduledRestarts by workload.
func SharedTargets(items []tidekeeperv1.ScheduledRestart) Shared {
	shared := Shared{}
	for i := range items {
		shared.Add(&items[i])
	}
	return shared
}

// Add adds a ScheduledRestart to the entry of its workload.
func (s Shared) Add(r *tidekeeperv1.ScheduledRestart) {
	key := r.Namespace + "/" + TargetOf(r)
	s[key] = append(s[key], r.Name)
}

// others returns the other ScheduledRestarts of the same workload.
func (s Shared) others(r *tidekeeperv1.ScheduledRestart) []string {
	return slices.DeleteFunc(slices.Clone(s[r.Namespace+"/"+TargetOf(r)]), func(name string) bool { return name == r.Name })
}

// RestartOf returns a ScheduledRestart's summary.
func RestartOf(r *tidekeeperv1.ScheduledRestart, shared Shared) Restart {
	shown := Restart{
		Namespace: r.Namespace, Name: r.Name, Target: TargetOf(r), Schedule: string(r.Spec.GetSchedule()), TimeZone: r.Spec.TimeZone,
		Status: restartStatus(r), Failures: r.Status.ConsecutiveFailures, LastSuccess: timeOf(r.Status.LastSuccessfulTime), Spread: r.Spec.SpreadSeconds > 0, AlsoBy: shared.others(r),
	}
	if len(r.Status.History) > 0 {
		last := r.Status.History[0]
		shown.LastTick, shown.Outcome = &last.ScheduledTime.Time, outcomeOf(last)
	}
	switch next := r.Status.NextScheduleTime; {
	case r.Status.Active != nil:
		shown.ActiveSince = &r.Status.Active.StartedTime.Time
		if eviction := r.Status.Active.Eviction; eviction != nil {
			shown.Refused = eviction.Refused
		}
	case next != nil:
		// Earlier versions of the manager do not record NextStartTime, so compute the offset.
		shown.Offset = OffsetOf(r)
		if start := r.Status.NextStartTime; start != nil {
			shown.Offset = start.Sub(next.Time)
		}
		start := next.Add(shown.Offset)
		shown.NextStart, shown.ByTick = &start, true
	}
	for _, next := range []*metav1.Time{r.Status.NextAgeTime, r.Status.NextChangeTime} {
		if next != nil && r.Status.Active == nil && (shown.NextStart == nil || next.Time.Before(*shown.NextStart)) {
			shown.NextStart, shown.Offset, shown.Spread, shown.ByTick = &next.Time, 0, false, false
		}
	}
	return shown
}

func timeOf(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// TargetOf formats the kind and name of the workload of a ScheduledRestart.
func TargetOf(r *tidekeeperv1.ScheduledRestart) string {
	return r.Spec.TargetRef.Kind + "/" + r.Spec.TargetRef.Name
}

// OffsetOf returns the delay between a ScheduledRestart's ticks (scheduled times) and the starts of
// its restarts. The delay is less than spec.spreadSeconds, or 0 without this field. It differs
// between ScheduledRestarts, so that their restarts do not all start at the same time.
func OffsetOf(r *tidekeeperv1.ScheduledRestart) time.Duration {
	return schedule.Spread(r.Namespace, r.Name, time.Duration(r.Spec.SpreadSeconds)*time.Second)
}

// StoppedByFailures reports whether the schedule is stopped because the consecutive failures
// reached the limit.
func StoppedByFailures(r *tidekeeperv1.ScheduledRestart) bool {
	return r.Status.ConsecutiveFailures >= max(1, r.Spec.FailureLimit)
}

// LastSuccessBefore reports whether the last successful restart was before limit. It returns true
// if no restart has succeeded.
func LastSuccessBefore(r *tidekeeperv1.ScheduledRestart, limit time.Time) bool {
	return r.Status.LastSuccessfulTime == nil || r.Status.LastSuccessfulTime.Time.Before(limit)
}

// waitReasons lists the reasons of the condition Ready that indicate that a due restart is waiting.
var waitReasons = sets.New(tidekeeperv1.ReasonTargetPaused, tidekeeperv1.ReasonTargetRolling,
	tidekeeperv1.ReasonTargetUnhealthy, tidekeeperv1.ReasonOutOfOrder, tidekeeperv1.ReasonPredecessorFailed, tidekeeperv1.ReasonPredecessorNotFound,
	tidekeeperv1.ReasonFrozen, tidekeeperv1.ReasonWindowClosed, tidekeeperv1.ReasonBudgetExhausted, tidekeeperv1.ReasonClosedByQuery)

// restartStatus returns a ScheduledRestart's status from its condition Ready.
func restartStatus(r *tidekeeperv1.ScheduledRestart) Status {
	ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady)
	if ready == nil {
		return notReconciled
	}
	s := Status{Reason: ready.Reason, Message: ready.Message}
	switch {
	case ready.Status != metav1.ConditionTrue:
		s.Severity = Bad
	case waitReasons.Has(ready.Reason):
		s.Severity = Warning
	}
	return s
}
