// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

// StatefulSet is the adapter for the kind StatefulSet of the API group apps.
var StatefulSet = &Kind{
	GroupVersionKind: apps("StatefulSet"),
	Resource:         "statefulsets",
	ShortName:        "sts",
	New:              func() Object { return &appsv1.StatefulSet{} },
	State:            state(statefulSetState),
	Restart:          restartTemplate,
	Trim: typed(func(s *appsv1.StatefulSet) {
		trimTemplate(&s.Spec.Template)
		s.Spec.VolumeClaimTemplates, s.Spec.ServiceName, s.Status.Conditions = nil, "", nil
		s.Spec.Selector = boundSelector(s.Spec.Selector)
	}),
	MarksPods: true,
}

func statefulSetState(o *appsv1.StatefulSet) *State {
	s := stateOf("StatefulSet", o)
	s.RestartedAt = restartedAt(&o.Spec.Template)
	s.Config = config(&o.Spec.Template)
	s.Selector = o.Spec.Selector
	s.OnDelete = o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	s.Pods = desired(o.Spec.Replicas)
	s.Updates = s.Pods - partitionOf(o)
	s.Partitioned = partitionOf(o) > 0 && s.Updates <= 0
	s.Rollout = statefulSetProgress(o)
	if s.OnDelete {
		s.Availability = statefulSetAvailability(o)
	}
	return s
}

// statefulSetAvailability reports whether enough pods are ready, regardless of the pod template
// from which they were created.
func statefulSetAvailability(s *appsv1.StatefulSet) Progress {
	if s.Status.ObservedGeneration == 0 || s.Generation > s.Status.ObservedGeneration {
		return notObserved()
	}
	replicas := desired(s.Spec.Replicas)
	p := Progress{Available: s.Status.ReadyReplicas >= replicas}
	if !p.Available {
		p.Message = fmt.Sprintf("%d of %d pods are ready", s.Status.ReadyReplicas, replicas)
	}
	return p
}

func statefulSetProgress(s *appsv1.StatefulSet) Progress {
	p, replicas := statefulSetAvailability(s), desired(s.Spec.Replicas)
	if p.Updating {
		return p
	}
	// Pods with an ordinal below the partition keep the old template.
	if partition := partitionOf(s); partition > 0 {
		if update := replicas - partition; s.Status.UpdatedReplicas < update {
			p.Updating, p.Message = true, fmt.Sprintf("%d of %d pods are updated", s.Status.UpdatedReplicas, update)
		}
		return p
	}
	if s.Status.UpdateRevision != s.Status.CurrentRevision {
		p.Updating, p.Message = true, fmt.Sprintf("%d of %d pods are updated", s.Status.UpdatedReplicas, replicas)
	}
	return p
}

// partitionOf returns the partition of a StatefulSet: pods with a lower ordinal keep the old
// template.
func partitionOf(s *appsv1.StatefulSet) int32 {
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		return *rolling.Partition
	}
	return 0
}
