// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// NotReady is a group of a workload's pods that are not ready, in the same stage and for the same
// reason.
type NotReady struct {
	Namespace, Workload string
	Stage               podtimeline.StageName
	// Pods is the number of pods in the group. Longest is the start-up of the pod that has been
	// waiting the longest.
	Pods    int
	Longest Startup
}

// NotReadyIn groups the pods that are not ready yet, the largest group first.
func NotReadyIn(startups []Startup) []NotReady {
	type group struct{ namespace, workload, reason string }
	places := map[group]int{}
	var all []NotReady
	for i := range startups {
		s := &startups[i]
		if s.Ready || s.Ended {
			continue
		}
		stage, reason := s.waits()
		key := group{s.Namespace, s.Workload, reason}
		at, found := places[key]
		if !found {
			at = len(all)
			places[key] = at
			all = append(all, NotReady{Namespace: s.Namespace, Workload: s.Workload, Stage: stage, Longest: *s})
		}
		g := &all[at]
		g.Pods++
		if s.Seconds > g.Longest.Seconds {
			g.Longest = *s
		}
	}
	slices.SortStableFunc(all, func(a, b NotReady) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(b.Longest.Seconds, a.Longest.Seconds), cmp.Compare(a.Namespace+"/"+a.Workload, b.Namespace+"/"+b.Workload))
	})
	return all
}

// waits returns a pod's current stage, and the reason why the pod is waiting. The reason omits
// message texts, which differ between pods that wait for the same reason.
func (s *Startup) waits() (stage podtimeline.StageName, reason string) {
	if len(s.timeline.Stages) == 0 {
		return "", ""
	}
	now := s.timeline.Stages[len(s.timeline.Stages)-1]
	reason = string(now.Name)
	for _, w := range now.Waits {
		reason += fmt.Sprint("/", w.Kind, " ", w.Name, " ", w.Reason)
	}
	return now.Name, reason
}

// Cause returns the reason why the pod that has been waiting the longest is not ready. It returns
// "" if the pod has no stages.
func (n *NotReady) Cause() string {
	if len(n.Longest.Stages) == 0 {
		return ""
	}
	return n.Longest.Stages[len(n.Longest.Stages)-1].WaitedFor
}

// StageMeaning describes the usual cause of a wait in a stage.
func StageMeaning(name podtimeline.StageName) string { return stageMeanings[name] }
