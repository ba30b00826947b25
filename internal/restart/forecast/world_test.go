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

// at returns a time of day on the date of these tests.
func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-06-10T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func metaAt(clock string) *metav1.Time { return &metav1.Time{Time: at(clock)} }

// nightly returns a ScheduledRestart of the Deployment of its name, at 03:00, with the
// defaults of the CRD.
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

// window lets restarts start only while a window is open.
func window(opens tidekeeperv1.CronExpression, length time.Duration) func(*tidekeeperv1.ScheduledRestart) {
	return spec(func(s *tidekeeperv1.ScheduledRestartSpec) {
		s.Windows = []tidekeeperv1.RestartWindow{{Schedule: opens, DurationSeconds: int32(length / time.Second)}}
	})
}

// young limits the age of pods, and has no schedule.
func young(limit time.Duration) func(*tidekeeperv1.ScheduledRestart) {
	return spec(func(s *tidekeeperv1.ScheduledRestartSpec) {
		s.Schedule, s.MaxPodAgeSeconds = "", int32(limit/time.Second)
	})
}

// changed has the content of ConfigMaps changed, so that a restart is due at a time. There is no
// schedule.
func changed(due string) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		r.Spec.Schedule, r.Spec.OnConfigChange = "", tidekeeperv1.ConfigMapsOnly
		r.Status.NextScheduleTime, r.Status.ConfigHash, r.Status.NextChangeTime = nil, "c1-0", metaAt(due)
	}
}

// aged returns a healthy Deployment of the namespace shop, and when its oldest pod was created.
func aged(oldest, name string) map[TargetKey]Target {
	all := targets(func(*workload.State) {}, name)
	all[keyOf(name)] = Target{State: all[keyOf(name)].State, Oldest: at(oldest)}
	return all
}

// took gives an object a history in which its last restart took a time.
func took(d time.Duration) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		yesterday := at("03:00:00").AddDate(0, 0, -1)
		r.Status.History = []tidekeeperv1.RestartRecord{{
			ScheduledTime: metav1.Time{Time: yesterday}, StartedTime: &metav1.Time{Time: yesterday}, CompletedTime: metav1.Time{Time: yesterday.Add(d)},
			Trigger: tidekeeperv1.TriggerSchedule, Outcome: tidekeeperv1.OutcomeSucceeded,
		}}
	}
}

// requestedAt requests a restart.
func requestedAt(clock string) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: workload.FormatTime(at(clock))}
	}
}

// inProgress has a restart in progress that was requested for the time at which it started.
func inProgress(since string) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		r.Status.LastRequestTime = metaAt(since)
		r.Status.Active = &tidekeeperv1.ActiveRestart{
			ScheduledTime: *metaAt(since), StartedTime: *metaAt(since), Trigger: tidekeeperv1.TriggerRequest, TargetUID: "t", TargetRef: &r.Spec.TargetRef,
		}
	}
}

// targets returns the Deployments of the namespace shop with these names, changed.
func targets(change func(*workload.State), names ...string) map[TargetKey]Target {
	all := map[TargetKey]Target{}
	for _, name := range names {
		state := &workload.State{Kind: "Deployment", Name: name, UID: "t", Pods: 3, Rollout: workload.Progress{Available: true}}
		change(state)
		all[keyOf(name)] = Target{State: state}
	}
	return all
}

// keyOf returns the key of a Deployment of the namespace shop.
func keyOf(name string) TargetKey {
	return KeyOf("shop", tidekeeperv1.TargetRef{Kind: "Deployment", Name: name})
}

// lines returns what becomes of the ticks, a line for each.
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

// after has it come after another one.
func after(name string) func(*tidekeeperv1.ScheduledRestart) {
	return spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.After = append(s.After, name) })
}

// evicting has it evict pods.
func evicting(r *tidekeeperv1.ScheduledRestart) { r.Spec.Method = tidekeeperv1.MethodEvict }

// evictionInProgress makes the restart in progress one that evicts pods.
func evictionInProgress(r *tidekeeperv1.ScheduledRestart) {
	r.Status.Active.Eviction = &tidekeeperv1.ActiveEviction{CreatedBefore: r.Status.Active.ScheduledTime}
}
