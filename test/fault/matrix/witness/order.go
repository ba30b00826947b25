// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// afterTheFirst: a template is written for a ScheduledRestart only while none of those that it
// comes after is being restarted.
func afterTheFirst(h History) (broken []string) {
	current := map[string]*tidekeeperv1.ScheduledRestart{}
	see := func(e *Event) {
		r, ok := e.Object.(*tidekeeperv1.ScheduledRestart)
		if !ok {
			return
		}
		if current[r.Namespace+"/"+r.Name] = r; e.Type == watch.Deleted {
			delete(current, r.Namespace+"/"+r.Name)
		}
	}
	h.restarts(see, func(e *Event, _, after workload) {
		for _, r := range current {
			if !isFor(r, e, after) {
				continue
			}
			for _, name := range r.Spec.After {
				if first := current[r.Namespace+"/"+name]; first != nil && first.Status.Active != nil {
					broken = append(broken, fmt.Sprintf("%s: restarted by %s while %s was restarting", e, r.Name, name))
				}
			}
		}
	})
	return broken
}

// isFor reports whether a workload was restarted by a ScheduledRestart.
func isFor(r *tidekeeperv1.ScheduledRestart, e *Event, after workload) bool {
	active := r.Status.Active
	return active != nil && r.Namespace == e.Object.GetNamespace() && r.Spec.TargetRef.Kind == after.kind && r.Spec.TargetRef.Name == e.Object.GetName() &&
		active.ScheduledTime.UTC().Format(time.RFC3339) == after.restartedAt
}
