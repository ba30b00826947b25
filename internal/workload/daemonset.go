// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DaemonSet is the adapter for the kind DaemonSet of the API group apps.
var DaemonSet = &Kind{
	GroupVersionKind: apps("DaemonSet"),
	Resource:         "daemonsets",
	ShortName:        "ds",
	New:              func() Object { return &appsv1.DaemonSet{} },
	State:            state(daemonSetState),
	Restart:          restartTemplate,
	Trim: typed(func(d *appsv1.DaemonSet) {
		trimTemplate(&d.Spec.Template)
		d.Spec.Selector, d.Status.Conditions = boundSelector(d.Spec.Selector), nil
	}),
	MarksPods: true,
	Exclude: func(o Object, s *State, absent Absence) error {
		return typed(func(d *appsv1.DaemonSet) { excludeNodes(d, s, absent) })(o)
	},
}

func daemonSetState(d *appsv1.DaemonSet) *State {
	s := stateOf("DaemonSet", d)
	s.RestartedAt = restartedAt(&d.Spec.Template)
	s.Config = config(&d.Spec.Template)
	s.Selector = d.Spec.Selector
	s.OnDelete = d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	s.Pods = d.Status.DesiredNumberScheduled
	s.Updates = s.Pods
	s.PerNode = true
	setDaemonSetProgress(s, d, Absence{})
	return s
}

// Absence counts the nodes that run a pod of a DaemonSet but are not Ready, called absent nodes. A
// restart cannot wait for the pods on these nodes.
type Absence struct {
	// Nodes is the total number of nodes that run a pod of the DaemonSet but are not Ready.
	Nodes int32
	// Desired is the number of absent nodes that Kubernetes includes in desiredNumberScheduled,
	// because the DaemonSet's pods tolerate all taints of these nodes. Old is the number of nodes
	// counted in Desired whose pod is outdated.
	Desired, Old int32
}

func excludeNodes(d *appsv1.DaemonSet, s *State, absent Absence) {
	setDaemonSetProgress(s, d, absent)
	s.Excluded = absent.Nodes
	s.Pods, s.Updates = max(0, s.Pods-absent.Desired), max(0, s.Updates-absent.Desired)
	s.Stalled = absent.Nodes > 0 && !rollsPast(d, absent.Nodes)
}

// rollsPast reports whether Kubernetes continues to replace the DaemonSet's pods on other nodes
// while the given number of its pods is unavailable. Unavailable pods count towards maxUnavailable
// or maxSurge (kubernetes, pkg/controller/daemon/update.go).
func rollsPast(d *appsv1.DaemonSet, unavailable int32) bool {
	limit := intstr.FromInt32(1)
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		if rolling.MaxUnavailable != nil {
			limit = *rolling.MaxUnavailable
		}
		if surge := rolling.MaxSurge; surge != nil && *surge != intstr.FromInt32(0) && *surge != intstr.FromString("0%") {
			limit = *surge
		}
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(&limit, int(d.Status.DesiredNumberScheduled), true)
	return err != nil || int(unavailable) < max(most, 1)
}

func setDaemonSetProgress(s *State, d *appsv1.DaemonSet, absent Absence) {
	s.Rollout = daemonSetProgress(d, absent)
	if s.OnDelete {
		s.Availability = daemonSetAvailability(d, absent)
	}
}

func daemonSetProgress(d *appsv1.DaemonSet, absent Absence) Progress {
	if s := &d.Status; d.Generation <= s.ObservedGeneration && s.UpdatedNumberScheduled+absent.Old < s.DesiredNumberScheduled {
		return Progress{Updating: true, Message: fmt.Sprintf("%d of %d pods are updated", s.UpdatedNumberScheduled, s.DesiredNumberScheduled)}
	}
	return daemonSetAvailability(d, absent)
}

// daemonSetAvailability reports whether enough pods are available, regardless of the pod template
// from which they were created.
func daemonSetAvailability(d *appsv1.DaemonSet, absent Absence) Progress {
	if d.Generation > d.Status.ObservedGeneration {
		return notObserved()
	}
	switch s := &d.Status; {
	case s.NumberAvailable+absent.Desired < s.DesiredNumberScheduled:
		return Progress{Message: fmt.Sprintf("%d of %d pods are available", s.NumberAvailable, s.DesiredNumberScheduled)}
	default:
		return Progress{Available: true}
	}
}
