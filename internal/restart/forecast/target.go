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

// turnaround is the time for which a restart holds its slot after its rollout: the manager writes that it is
// complete, then that the next restart starts, and the times in a history are truncated to seconds.
const turnaround = time.Second

// TargetKey identifies a workload.
type TargetKey struct{ Namespace, APIVersion, Kind, Name string }

// KeyOf returns the key of a workload.
func KeyOf(namespace string, ref tidekeeperv1.TargetRef) TargetKey {
	return TargetKey{namespace, ref.GetAPIVersion(), ref.Kind, ref.Name}
}

// Target is the current state of a workload.
type Target struct {
	// State is nil if the workload does not exist.
	State *workload.State
	// Unserved is set if the cluster does not serve its kind.
	Unserved bool
	// Oldest is the creation time of its oldest pod. If it is zero, the pods have the age that the status
	// shows.
	Oldest time.Time
}

// target is a workload in the simulation.
type target struct {
	Target
	// users has the objects that restart the workload.
	users []*object
	// completes is the time at which the rollout in progress completes, and began is the time at which the
	// last rollout began.
	completes, began time.Time
}

// targetOf returns the workload of the restart in progress of an object, or of its spec.
func (s *simulation) targetOf(o *object) *target {
	ref := decision.TargetRef(o.restart.Status.Active, &o.restart.Spec)
	if ref == o.restart.Spec.TargetRef {
		return o.target
	}
	return s.targets[KeyOf(o.key.Namespace, ref)]
}

// use adds a workload that an object restarts.
func (s *simulation) use(o *object, ref tidekeeperv1.TargetRef) {
	key := KeyOf(o.key.Namespace, ref)
	t := s.targets[key]
	if t == nil {
		t = &target{Target: s.initial(key, o), began: s.in.Now}
		s.targets[key] = t
		if active := o.restart.Status.Active; t.State != nil && active != nil && active.Eviction != nil {
			// The workload does not show that its pods are being evicted.
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

// initial returns the state of a workload at the beginning.
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

// Whole returns a copy of the state of a workload; a DaemonSet-like workload has all its pods in the copy.
// The manager leaves out nodes that are not ready, which are unknown here.
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

// assumed returns the state of an unknown workload: healthy, unless it is being restarted.
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

// completion returns the time at which a rollout that is in progress at the beginning completes: after the
// usual duration of a restart, or immediately if that has passed.
func (s *simulation) completion(o *object) time.Time {
	started := s.in.Now
	if active := o.restart.Status.Active; active != nil {
		started = active.StartedTime.Time
	}
	return later(s.in.Now, started.Add(o.duration+turnaround))
}

// send restarts a workload for a tick.
func (s *simulation) send(o *object, t *target, tick time.Time) {
	state := *t.State
	markRestarted(&state, tick, o.duration)
	t.State, t.began = &state, s.now
	s.agenda.wakeTarget(t, s.now.Add(o.duration+turnaround))
	s.changed(t)
}

// markRestarted changes the state of a workload to a restart in progress.
func markRestarted(state *workload.State, tick time.Time, duration time.Duration) {
	at := workload.FormatTime(tick)
	state.RestartedAt, state.LastTick = at, at
	state.Rollout = workload.Progress{Updating: true, Message: fmt.Sprintf("its last restart took %s", duration)}
	state.Availability = workload.Progress{Message: state.Rollout.Message}
}

// complete completes the rollout of a workload.
func (s *simulation) complete(t *target) {
	state := *t.State
	state.Rollout, state.Availability = workload.Progress{Available: true}, workload.Progress{Available: true}
	t.State = &state
	if !t.Oldest.IsZero() {
		t.Oldest = t.began
	}
	s.changed(t)
}

// changed schedules decisions about the objects that restart a workload.
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
