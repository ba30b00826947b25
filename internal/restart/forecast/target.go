// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// turnaround is the time for which a restart holds its slot after its rollout: the manager has to
// write that the restart is complete, and then that the next restart starts. It also accounts for
// the times in a history, which are truncated to seconds.
const turnaround = time.Second

// TargetKey identifies a workload by its namespace, API version, kind and name.
type TargetKey struct{ Namespace, APIVersion, Kind, Name string }

// KeyOf returns the key of the workload that a target reference in the given namespace identifies.
func KeyOf(namespace string, ref tidekeeperv1.TargetRef) TargetKey {
	return TargetKey{namespace, ref.GetAPIVersion(), ref.Kind, ref.Name}
}

// Target is the current state of a workload.
type Target struct {
	// State is nil if the workload does not exist.
	State *workload.State
	// Unserved is true if the cluster does not serve the kind of the workload.
	Unserved bool
	// Oldest is the creation time of the oldest pod; zero if unknown. If it is unknown, it is
	// derived from the status of a ScheduledRestart.
	Oldest time.Time
}

// target is a workload in the simulation, with its simulated rollouts.
type target struct {
	Target
	// users lists the objects that restart the workload.
	users []*object
	// completes is the time at which the rollout in progress completes. began is the time at which
	// the last rollout began.
	completes, began time.Time
}

// targetOf returns the workload that an object's restart in progress restarts or, without a restart
// in progress, the workload that its spec names.
func (s *simulation) targetOf(o *object) *target {
	ref := decision.TargetRef(o.restart.Status.Active, &o.restart.Spec)
	if ref == o.restart.Spec.TargetRef {
		return o.target
	}
	return s.targets[KeyOf(o.key.Namespace, ref)]
}

// use registers an object that restarts a workload. It adds the workload to the simulation if
// necessary.
func (s *simulation) use(o *object, ref tidekeeperv1.TargetRef) {
	key := KeyOf(o.key.Namespace, ref)
	t := s.targets[key]
	if t == nil {
		t = &target{Target: s.initial(key, o), began: s.in.Now}
		s.targets[key] = t
		if active := o.restart.Status.Active; t.State != nil && active != nil && active.Eviction != nil {
			// The state of a workload does not show that a restart is evicting its pods.
			markRestarted(t.State, active.ScheduledTime.Time, o.duration)
		}
		if t.State != nil && t.State.Rollout.Updating && !t.State.Rollout.Exceeded {
			s.agenda.wakeTarget(t, s.completion(o))
		}
	}
	if t.users = append(t.users, o); ref == o.restart.Spec.TargetRef {
		o.target = t
	}
	if next := o.restart.Status.NextAgeTime; next != nil && t.Oldest.IsZero() && o.restart.Spec.MaxPodAgeSeconds > 0 {
		t.Oldest = next.Add(-decision.AgeLimit(o.restart))
	}
}

// initial returns the state of a workload when the forecast begins.
func (s *simulation) initial(key TargetKey, o *object) Target {
	known, ok := s.in.Targets[key]
	if !ok {
		return Target{State: s.assumed(key, o)}
	}
	if known.State == nil {
		return known
	}
	return Target{State: Whole(known.State), Oldest: known.Oldest}
}

// Whole returns a copy of the state of a workload, in which a DaemonSet-like workload has all its
// pods. The manager excludes NotReady nodes from such workloads, but a forecast does not read
// nodes.
func Whole(state *workload.State) *workload.State {
	if state == nil {
		return nil
	}
	whole := *state
	if whole.PerNode {
		whole.PerNode, whole.Rollout.Available, whole.Availability.Available = false, true, true
	}
	return &whole
}

// assumed returns the state of a workload that is missing from [Input.Targets]. The workload is
// assumed to be healthy, or in a rollout if it is being restarted.
func (s *simulation) assumed(key TargetKey, o *object) *workload.State {
	state := &workload.State{Kind: key.Kind, Name: key.Name, UID: "assumed", Pods: 1, Updates: 1, Rollout: workload.Progress{Available: true}}
	if active := o.restart.Status.Active; active != nil {
		state.UID = types.UID(active.TargetUID)
		if !active.StartedTime.After(s.in.Now) {
			markRestarted(state, active.ScheduledTime.Time, o.duration)
		}
	}
	return state
}

// completion returns the completion time of a rollout that is in progress when the forecast begins.
// The rollout takes the usual duration of the object's restarts; if that has already passed, it
// completes immediately.
func (s *simulation) completion(o *object) time.Time {
	started := s.in.Now
	if active := o.restart.Status.Active; active != nil {
		started = active.StartedTime.Time
	}
	return later(s.in.Now, started.Add(o.duration+turnaround))
}

// send starts a workload's rollout for a tick, and schedules the completion of the rollout.
func (s *simulation) send(o *object, t *target, tick time.Time) {
	state := *t.State
	markRestarted(&state, tick, o.duration)
	t.State, t.began = &state, s.now
	s.agenda.wakeTarget(t, s.now.Add(o.duration+turnaround))
	s.changed(t)
}

// markRestarted marks a workload as restarted for the given tick, with a rollout in progress.
func markRestarted(state *workload.State, tick time.Time, duration time.Duration) {
	at := workload.FormatTime(tick)
	state.RestartedAt, state.LastTick = at, at
	state.Rollout = workload.Progress{Updating: true, Message: fmt.Sprintf("its last restart took %s", duration)}
	state.Availability = workload.Progress{Message: state.Rollout.Message}
}

// complete completes a workload's rollout, and replaces its pods.
func (s *simulation) complete(t *target) {
	state := *t.State
	state.Rollout, state.Availability = workload.Progress{Available: true}, workload.Progress{Available: true}
	t.State = &state
	if !t.Oldest.IsZero() {
		t.Oldest = t.began
	}
	s.changed(t)
}

// changed schedules decisions about the objects that restart a workload, after the workload's state
// has changed.
func (s *simulation) changed(t *target) {
	for _, o := range t.users {
		s.agenda.wakeObject(o, s.now)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
