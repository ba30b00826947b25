// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// turnaround is the time for which a restart keeps its slot of the restart budget after its rollout
// has ended. The manager first has to write that the restart is complete, and then that the next
// restart starts. It also accounts for the durations in the history, which are computed from times
// in whole seconds.
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
	// Oldest is the creation time of the oldest pod; zero if unknown. An unknown time is derived,
	// if possible, from the status of a ScheduledRestart.
	Oldest time.Time
	// LastProgress is the time at which the rollout in progress last made progress. ProgressLimit
	// is the time without progress after which it counts as stuck. See [workload.LastProgress].
	LastProgress  time.Time
	ProgressLimit time.Duration
}

// target is a workload in the simulation, with its simulated rollouts.
type target struct {
	Target
	// index identifies the target in the agenda. It is negative, unlike the index of a
	// ScheduledRestart: -1 for the first target in [simulation.used], -2 for the second, and so on.
	index int
	// state is the simulated state of the workload. The field State points to it.
	state workload.State
	// users lists the ScheduledRestarts that restart the workload.
	users []*object
	// ends is the time at which the rollout in progress completes or, if the workload is stuck,
	// exceeds its progress deadline. began is the time at which the latest rollout began.
	ends, began time.Time
	// stuck is true if no rollout of the workload completes.
	stuck bool
}

// targetOf returns the workload that a ScheduledRestart's restart in progress restarts or, without
// a restart in progress, the workload that its spec names.
func (s *simulation) targetOf(o *object) *target {
	ref := decision.TargetRef(o.restart.Status.Active, &o.restart.Spec)
	if ref == o.restart.Spec.TargetRef {
		return o.target
	}
	return s.targets[KeyOf(o.key.Namespace, ref)]
}

// use registers a ScheduledRestart that restarts a workload. It adds the workload to the simulation
// if necessary.
func (s *simulation) use(o *object, ref tidekeeperv1.TargetRef) {
	key := KeyOf(o.key.Namespace, ref)
	t := s.targets[key]
	if t == nil {
		if t = &o.own; t.index != 0 {
			t = &target{}
		}
		*t = target{Target: s.initial(key, o), index: -len(s.used) - 1, began: s.in.Now}
		s.targets[key], s.used = t, append(s.used, t)
		if t.State != nil {
			t.state = *t.State
			t.State = &t.state
			ends, hangs := t.begin(o, s.in.Now)
			s.agenda.wakeTarget(t, ends)
			s.report.hangs(o, t.State, hangs)
		}
	}
	if t.users = append(t.users, o); ref == o.restart.Spec.TargetRef {
		o.target = t
	}
	if next := o.restart.Status.NextAgeTime; next != nil && t.Oldest.IsZero() && o.restart.Spec.MaxPodAgeSeconds > 0 {
		t.Oldest = next.Add(-decision.AgeLimit(&o.restart))
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
	known.State = Whole(known.State)
	return known
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

// send starts a workload's rollout for a tick (the scheduled time of a restart), and schedules the
// end of the rollout. It also schedules decisions about the other ScheduledRestarts that restart
// the workload.
func (s *simulation) send(o *object, t *target, tick time.Time) {
	s.agenda.wakeTarget(t, t.restart(o, tick, s.now))
	for _, other := range t.users {
		if other != o { // The decision that starts the rollout already takes the rollout into account.
			s.agenda.wakeObject(other, s.now)
		}
	}
}

// changed schedules decisions about the ScheduledRestarts that restart a workload, after the
// workload's state has changed.
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
