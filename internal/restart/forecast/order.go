// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// order sets the predecessors of a ScheduledRestart in the input of a decision.
func (s *simulation) order(o *object, in *decision.Input) {
	// The error is always nil, because all ScheduledRestarts are in memory.
	_ = in.ReadOrder(func(name string) (*tidekeeperv1.ScheduledRestart, error) {
		if other := s.byKey[types.NamespacedName{Namespace: o.key.Namespace, Name: name}]; other != nil {
			return &other.restart, nil
		}
		return nil, nil
	})
}

// wakeFollowers schedules decisions about the followers of a ScheduledRestart, which name it in
// spec.after, if the given decision about it can affect them.
func (s *simulation) wakeFollowers(o *object, d *decision.Output) {
	if len(s.followers[o.key]) == 0 {
		return
	}
	before := &o.restart.Status
	if len(d.Records) == 0 && (before.Active == nil) == (d.Status.Active == nil) && before.NextScheduleTime.Equal(d.Status.NextScheduleTime) &&
		before.NextAgeTime.Equal(d.Status.NextAgeTime) && before.NextChangeTime.Equal(d.Status.NextChangeTime) && before.ObservedGeneration == d.Status.ObservedGeneration {
		return
	}
	for _, follower := range s.followers[o.key] {
		s.agenda.wakeObject(follower, s.now)
	}
}
