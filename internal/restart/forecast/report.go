// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// report collects the results of a forecast during the simulation.
type report struct {
	Forecast
	namespace string
	// left is the number of ticks (scheduled times) that may still be added to the lists of the
	// forecast.
	left int
}

func newReport(in *Input) report {
	return report{
		Forecast: Forecast{
			From: in.Now, Until: in.Until,
			Minutes: []Minute{}, Started: []Tick{}, NotStarted: []Tick{}, Waiting: []Tick{},
		},
		namespace: in.Namespace, left: in.MostListed,
	}
}

// shows reports whether the forecast includes the ticks (scheduled times) of the given
// ScheduledRestart.
func (r *report) shows(o *object) bool { return r.namespace == "" || o.key.Namespace == r.namespace }

// hangs adds a workload whose rollout never completes to [Forecast.Hanging]. reason is the reason
// for that; if it is "", hangs does nothing. o is a ScheduledRestart that restarts the workload.
func (r *report) hangs(o *object, state *workload.State, reason string) {
	if reason != "" && r.shows(o) {
		r.Hanging = append(r.Hanging, Hanging{Namespace: o.key.Namespace, Target: state.Kind + "/" + state.Name, Message: reason})
	}
}

// list appends a tick to the given list, unless the maximum number of listed ticks is reached. It
// reports whether the tick was appended.
func (r *report) list(list *[]Tick, t Tick) bool {
	if r.left == 0 {
		r.Summary.Unlisted++
		return false
	}
	r.left--
	if len(*list) == cap(*list) {
		*list = slices.Grow(*list, len(*list)+1) // For a long list, append would grow the capacity by only a quarter, and copy the list more often.
	}
	*list = append(*list, t)
	return true
}

// start records that a restart starts, or that it is in progress when the forecast begins.
func (r *report) start(o *object, active *tidekeeperv1.ActiveRestart) {
	if !r.shows(o) {
		return
	}
	t := tickOf(o, active.ScheduledTime, active.Trigger)
	if ref := decision.TargetRef(active, &o.restart.Spec); ref != o.restart.Spec.TargetRef {
		t.Target = nameOf(ref)
	}
	t.Start, t.Assumed = active.StartedTime.UTC(), o.assumed
	if o.started = -1; r.list(&r.Started, t) {
		o.started = len(r.Started) - 1
	}
	r.Summary.Started++
	r.Summary.InProgress++
	if o.assumed {
		r.Summary.Assumed++
	}
	if first := r.Summary.FirstStart; first.IsZero() || t.Start.Before(first) {
		r.Summary.FirstStart = t.Start
	}
	i, found := r.minute(t.Start)
	if !found {
		r.Minutes = slices.Insert(r.Minutes, i, Minute{Time: t.Start.Truncate(time.Minute)})
	}
	r.Minutes[i].Started++
}

// minute returns the index of the minute that contains the given time in [Forecast.Minutes], or the
// index at which to insert that minute.
func (r *report) minute(of time.Time) (i int, found bool) {
	of = of.Truncate(time.Minute)
	return slices.BinarySearchFunc(r.Minutes, of, func(m Minute, of time.Time) int { return m.Time.Compare(of) })
}

// end records that a ScheduledRestart's restart in progress ends.
func (r *report) end(o *object, record *tidekeeperv1.RestartRecord) {
	if !r.shows(o) {
		return
	}
	r.Summary.InProgress--
	completion := record.CompletedTime.UTC()
	switch record.Outcome {
	case tidekeeperv1.OutcomeFailed:
		r.Summary.Failed++
	case tidekeeperv1.OutcomeMissed, tidekeeperv1.OutcomeSkipped:
		// The tick was claimed (written to the status), but never sent to the target. Its restart
		// therefore has no completion time.
		completion = time.Time{}
		r.countNotStarted(record)
	}
	if completion.After(r.Summary.LastCompletion) {
		r.Summary.LastCompletion = completion
	}
	if o.started >= 0 {
		t := &r.Started[o.started]
		t.Completion, t.Outcome, t.Reason, t.Message = completion, record.Outcome, record.Reason, record.Message
	}
}

// takeBack records that the restart of a ScheduledRestart, which was in progress when the forecast
// began, is withdrawn. Its tick was never sent to the target, and the restart is no longer
// necessary.
func (r *report) takeBack(o *object) {
	if !r.shows(o) {
		return
	}
	r.Summary.InProgress--
	r.Summary.Started--
	if o.started >= 0 {
		t := &r.Started[o.started]
		t.Outcome, t.Reason, t.Message = tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonSuperseded, "it was not sent, and its pods are not too old any more"
	}
}

// notStarted records that a tick (the scheduled time of a restart) is missed or skipped.
func (r *report) notStarted(o *object, record *tidekeeperv1.RestartRecord) {
	if !r.shows(o) {
		return
	}
	r.countNotStarted(record)
	t := tickOf(o, record.ScheduledTime, record.Trigger)
	t.Outcome, t.Reason, t.Message, t.EarlierTicks = record.Outcome, record.Reason, record.Message, int(record.EarlierTicks)
	r.list(&r.NotStarted, t)
}

func (r *report) countNotStarted(record *tidekeeperv1.RestartRecord) {
	n := 1 + int(record.EarlierTicks)
	if record.Outcome == tidekeeperv1.OutcomeMissed {
		r.Summary.Missed += n
	} else {
		r.Summary.Skipped += n
	}
}

// waits records whether any restart of a ScheduledRestart is due and has not started, and updates
// the number of waiting ScheduledRestarts.
func (r *report) waits(o *object, waits bool) {
	if waits == o.waits || !r.shows(o) {
		return
	}
	if o.waits = waits; waits {
		r.Summary.Waiting++
	} else {
		r.Summary.Waiting--
	}
}

// pass records that nothing happens in the simulation between the times from and to. If this period
// includes the end of the minute that contains from, pass stores the number of ScheduledRestarts
// that wait at the end of that minute.
func (r *report) pass(from, to time.Time) {
	if i, found := r.minute(from); found && to.Sub(r.Minutes[i].Time) >= time.Minute {
		r.Minutes[i].Waiting = r.Summary.Waiting
	}
}

// finish adds the ticks of the waiting restarts, sorts the ticks of the started restarts, and
// returns the completed forecast.
func (r *report) finish(objects []*object) Forecast {
	for _, o := range objects {
		if o.waits {
			r.list(&r.Waiting, waitingTick(o))
		}
	}
	slices.SortStableFunc(r.Started, func(a, b Tick) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return r.Forecast
}

// waitingTick describes the tick (the scheduled time) of a ScheduledRestart's waiting restart.
func waitingTick(o *object) Tick {
	status := &o.restart.Status
	tick, trigger := status.PendingRequestTime, tidekeeperv1.TriggerRequest
	switch {
	case tick != nil:
	case o.scheduled:
		tick, trigger = status.NextScheduleTime, tidekeeperv1.TriggerSchedule
	case status.NextAgeTime == nil || status.NextChangeTime.Before(status.NextAgeTime):
		tick, trigger = status.NextChangeTime, tidekeeperv1.TriggerChange
	default:
		tick, trigger = status.NextAgeTime, tidekeeperv1.TriggerAge
	}
	t := tickOf(o, *tick, trigger)
	if ready := meta.FindStatusCondition(status.Conditions, tidekeeperv1.ConditionReady); ready != nil {
		t.Reason, t.Message = ready.Reason, ready.Message
	}
	return t
}

func tickOf(o *object, tick metav1.Time, trigger tidekeeperv1.Trigger) Tick {
	return Tick{Namespace: o.key.Namespace, Name: o.key.Name, Target: o.targetName, Tick: tick.UTC(), Trigger: trigger}
}

func nameOf(ref tidekeeperv1.TargetRef) string { return ref.Kind + "/" + ref.Name }
