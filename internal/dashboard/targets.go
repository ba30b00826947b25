// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// targets returns the state of the target workload of each ScheduledRestart. It omits workloads
// that could not be read. A forecast assumes that such workloads are healthy.
func (s *snapshot) targets() map[forecast.TargetKey]forecast.Target {
	targets := map[forecast.TargetKey]forecast.Target{}
	for _, restart := range s.restarts() {
		for _, ref := range []tidekeeperv1.TargetRef{restart.Spec.TargetRef, decision.TargetRef(restart.Status.Active, &restart.Spec)} {
			if kind, err := workload.Get(ref); err == nil && s.problem(kind.Resource) == "" {
				targets[forecast.KeyOf(restart.Namespace, ref)] = forecast.Target{Unserved: s.unserved[kind.Resource]}
			}
		}
	}
	for _, kind := range workload.Kinds {
		for _, o := range s.objects[kind.Resource] {
			object, ok := o.(workload.Object)
			if !ok {
				continue
			}
			key := forecast.KeyOf(object.GetNamespace(), kind.Ref(object.GetName()))
			if _, wanted := targets[key]; !wanted {
				continue
			}
			if state, err := kind.State(object); err == nil {
				at, limit := workload.LastProgress(object)
				targets[key] = forecast.Target{State: state, LastProgress: at, ProgressLimit: limit}
			}
		}
	}
	s.addPodAges(targets)
	return targets
}

// addPodAges adds the creation time of each workload's oldest pod in the namespaces with a
// ScheduledRestart that limits the pods' age.
func (s *snapshot) addPodAges(targets map[forecast.TargetKey]forecast.Target) {
	limited := map[string]bool{}
	for _, restart := range s.restarts() {
		limited[restart.Namespace] = limited[restart.Namespace] || restart.Spec.MaxPodAgeSeconds > 0
	}
	ages := view.PodAges{}
	for _, pod := range s.pods() {
		if limited[pod.Namespace] {
			ages.Add(pod)
		}
	}
	for key, oldest := range ages {
		if t, known := targets[key]; known {
			t.Oldest = oldest
			targets[key] = t
		}
	}
}
