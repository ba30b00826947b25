// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
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

// makeInputs returns the input for a ScheduledRestart of a healthy Deployment at 03:00, with a
// current status and a free slot. The time is 03:00:01.
func makeInputs(changes ...func(*Input)) Input {
	ticks, err := schedule.Parse("0 3 * * *", "UTC")
	if err != nil {
		panic(err)
	}
	in := Input{
		Restart: &tidekeeperv1.ScheduledRestart{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1", Generation: 1, CreationTimestamp: *metaAt("00:00:00")},
			Spec: tidekeeperv1.ScheduledRestartSpec{
				TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}, Schedule: "0 3 * * *", TimeZone: "UTC",
				StartingDeadlineSeconds: 900, ProgressDeadlineSeconds: 1800, Precondition: tidekeeperv1.PreconditionHealthy,
				FailureLimit: 3, HistoryLimit: 10,
			},
			Status: tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1, NextScheduleTime: metaAt("03:00:00")},
		},
		Ticks:   ticks,
		Target:  &workload.State{Kind: "Deployment", Name: "web", UID: "t", Pods: 3, Updates: 3, Rollout: workload.Progress{Available: true}},
		HasSlot: true, FreezesLive: true, ChangeSettle: DefaultChangeSettle,
		Now: at("03:00:01"),
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func now(clock string) func(*Input) { return func(in *Input) { in.Now = at(clock) } }

func withTarget(change func(*workload.State)) func(*Input) {
	return func(in *Input) { change(in.Target) }
}

func withSpec(change func(*tidekeeperv1.ScheduledRestartSpec)) func(*Input) {
	return func(in *Input) { change(&in.Restart.Spec) }
}

func noSlot(in *Input) { in.HasSlot = false }

// edited changes the spec. No manager has observed the edit yet.
func edited(change func(*tidekeeperv1.ScheduledRestartSpec)) func(*Input) {
	return func(in *Input) {
		change(&in.Restart.Spec)
		in.Restart.Generation = 2
	}
}

// active sets a restart in progress, for the 03:00 tick, that started at 03:00:01.
func active(in *Input) {
	in.Restart.Status.NextScheduleTime = &metav1.Time{Time: at("03:00:00").AddDate(0, 0, 1)}
	in.Restart.Status.LastScheduleTime = metaAt("03:00:00")
	in.Restart.Status.Active = &tidekeeperv1.ActiveRestart{
		ScheduledTime: *metaAt("03:00:00"), StartedTime: *metaAt("03:00:01"), Trigger: tidekeeperv1.TriggerSchedule, TargetUID: "t",
	}
}

// sentTo changes the target's state to a rollout in progress for the 03:00 tick.
func sentTo(t *workload.State) {
	t.RestartedAt, t.LastTick = formatTime(at("03:00:00")), formatTime(at("03:00:00"))
	t.Rollout = workload.Progress{Updating: true, Message: "1 of 3 pods are updated"}
}

// complete completes the rollout of the target.
func complete(t *workload.State) { t.Rollout = workload.Progress{Available: true} }

// noPods provides empty pod startup times, as if they had been read.
func noPods(in *Input) { in.PodStartups = []time.Duration{} }

// unsent marks the target as read from the API server, without a trace of the tick of the restart
// in progress.
func unsent(in *Input) { in.Live, in.RolledOut = true, new(false) }

// sentHere records that this process has sent the 03:00 tick, and marks the target as read from the
// API server.
func sentHere(in *Input) { in.Live, in.Sent = true, at("03:00:00") }

func suspended(spec *tidekeeperv1.ScheduledRestartSpec) { spec.Suspend = true }

func requestAt(clock string) func(*Input) {
	return func(in *Input) {
		in.Restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: formatTime(at(clock))}
	}
}

var (
	tomorrow   = at("03:00:00").AddDate(0, 0, 1)
	nextSunday = at("03:00:00").AddDate(0, 0, 4)
)

func sunday(in *Input) { in.Ticks, _ = schedule.Parse("0 3 * * 0", "UTC") }
