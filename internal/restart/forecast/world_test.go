// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// at returns the given time of day on a fixed date.
func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-06-10T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func metaAt(clock string) *metav1.Time { return &metav1.Time{Time: at(clock)} }

// nightly returns a ScheduledRestart that restarts the Deployment of the same name at 03:00, with
// the defaults of the CRD.
func nightly(namespace, name string, changes ...func(*tidekeeperv1.ScheduledRestart)) *tidekeeperv1.ScheduledRestart {
	r := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: *metaAt("00:00:00")},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Schedule: "0 3 * * *", TimeZone: "UTC",
			StartingDeadlineSeconds: 900, ProgressDeadlineSeconds: 1800, Precondition: tidekeeperv1.PreconditionHealthy,
			FailureLimit: 3, HistoryLimit: 10,
		},
		Status: tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func spec(change func(*tidekeeperv1.ScheduledRestartSpec)) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) { change(&r.Spec) }
}

// window adds a window in which restarts may start.
func window(opens tidekeeperv1.CronExpression, length time.Duration) func(*tidekeeperv1.ScheduledRestart) {
	return spec(func(s *tidekeeperv1.ScheduledRestartSpec) {
		s.Windows = []tidekeeperv1.RestartWindow{{Schedule: opens, DurationSeconds: int32(length / time.Second)}}
	})
}

// young replaces the schedule with the given maximum age of pods.
func young(limit time.Duration) func(*tidekeeperv1.ScheduledRestart) {
	return spec(func(s *tidekeeperv1.ScheduledRestartSpec) {
		s.Schedule, s.MaxPodAgeSeconds = "", int32(limit/time.Second)
	})
}

// changed replaces the schedule with onConfigChange, and adds a pending change whose restart is due
// at the given time.
func changed(due string) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		r.Spec.Schedule, r.Spec.OnConfigChange = "", tidekeeperv1.ConfigMapsOnly
		r.Status.NextScheduleTime, r.Status.ConfigHash, r.Status.NextChangeTime = nil, "c1-0", metaAt(due)
	}
}

// aged returns a healthy Deployment in the namespace shop whose oldest pod was created at the given
// time.
func aged(oldest, name string) map[TargetKey]Target {
	all := targets(func(*workload.State) {}, name)
	all[keyOf(name)] = Target{State: all[keyOf(name)].State, Oldest: at(oldest)}
	return all
}

// took adds a history in which the last restart took the given time.
func took(d time.Duration) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		yesterday := at("03:00:00").AddDate(0, 0, -1)
		r.Status.History = []tidekeeperv1.RestartRecord{{
			ScheduledTime: metav1.Time{Time: yesterday}, StartedTime: &metav1.Time{Time: yesterday}, CompletedTime: metav1.Time{Time: yesterday.Add(d)},
			Trigger: tidekeeperv1.TriggerSchedule, Outcome: tidekeeperv1.OutcomeSucceeded,
		}}
	}
}

// requestedAt adds a restart request for the given time of day.
func requestedAt(clock string) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: workload.FormatTime(at(clock))}
	}
}

// inProgress adds a restart in progress that was requested for the given time and started then.
func inProgress(since string) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		r.Status.LastRequestTime = metaAt(since)
		r.Status.Active = &tidekeeperv1.ActiveRestart{
			ScheduledTime: *metaAt(since), StartedTime: *metaAt(since), Trigger: tidekeeperv1.TriggerRequest, TargetUID: "t", TargetRef: &r.Spec.TargetRef,
		}
	}
}

// targets returns the Deployments in the namespace shop with the given names, each modified by
// change.
func targets(change func(*workload.State), names ...string) map[TargetKey]Target {
	all := map[TargetKey]Target{}
	for _, name := range names {
		state := &workload.State{Kind: "Deployment", Name: name, UID: "t", Pods: 3, Rollout: workload.Progress{Available: true}}
		change(state)
		all[keyOf(name)] = Target{State: state}
	}
	return all
}

// keyOf returns the key of a Deployment in the namespace shop.
func keyOf(name string) TargetKey {
	return KeyOf("shop", tidekeeperv1.TargetRef{Kind: "Deployment", Name: name})
}

// lines formats the ticks of a forecast, one per line.
func lines(f Forecast) []string {
	var all []string
	clock := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format(time.TimeOnly)
	}
	for _, t := range f.Started {
		all = append(all, fmt.Sprintf("%s/%s %s to %s %s", t.Namespace, t.Name, clock(t.Start), clock(t.Completion), outcome(t)))
	}
	for _, t := range f.NotStarted {
		all = append(all, fmt.Sprintf("%s/%s tick %s %s", t.Namespace, t.Name, clock(t.Tick), outcome(t)))
	}
	for _, t := range f.Waiting {
		all = append(all, fmt.Sprintf("%s/%s tick %s waits %s", t.Namespace, t.Name, clock(t.Tick), t.Reason))
	}
	return all
}

func outcome(t Tick) string {
	switch {
	case t.Outcome == "":
		return "in progress"
	case t.EarlierTicks > 0:
		return fmt.Sprintf("%s %s and %d before", t.Outcome, t.Reason, t.EarlierTicks)
	case t.Reason == "":
		return string(t.Outcome)
	default:
		return string(t.Outcome) + " " + t.Reason
	}
}

// after adds a predecessor with the given name.
func after(name string) func(*tidekeeperv1.ScheduledRestart) {
	return spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.After = append(s.After, name) })
}

// evicting sets the restart method to the eviction of pods.
func evicting(r *tidekeeperv1.ScheduledRestart) { r.Spec.Method = tidekeeperv1.MethodEvict }

// evictionInProgress turns the restart in progress into a restart by eviction.
func evictionInProgress(r *tidekeeperv1.ScheduledRestart) {
	r.Status.Active.Eviction = &tidekeeperv1.ActiveEviction{CreatedBefore: r.Status.Active.ScheduledTime}
}
