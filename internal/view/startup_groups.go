// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// NotReady is pods of a workload that are not ready yet, in the same stage and for the same reason.
type NotReady struct {
	Namespace, Workload string
	Stage               podtimeline.StageName
	// Pods is how many they are, and Longest the pod that waits for longest.
	Pods    int
	Longest Startup
}

// NotReadyIn groups the pods that are not ready yet: the largest groups first.
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

// waits returns the stage that a pod is in, and for which reason, without the parts of a message that
// differ from pod to pod.
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

// Cause is why the pod that waits for longest is not ready, as far as it is known.
func (n *NotReady) Cause() string {
	if len(n.Longest.Stages) == 0 {
		return ""
	}
	return n.Longest.Stages[len(n.Longest.Stages)-1].WaitedFor
}

// StageMeaning says what pods usually wait for in a stage.
func StageMeaning(name podtimeline.StageName) string { return stageMeanings[name] }
