// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"fmt"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// awaitMarker waits until the manager has seen its clock's current time and has done all work that
// is due by then. It creates a marker, a separate workload whose restart is due two seconds later
// by the same clock, and waits until the marker has been restarted.
func (s *fixture) awaitMarker(t *testing.T) {
	t.Helper()
	s.markers++
	name := fmt.Sprint("marker-", s.markers)
	deployment := framework.Deployment(name, 0, framework.App)
	deployment.Namespace = s.namespace
	s.Apply(t, deployment)
	framework.Eventually(t, name+" is complete", func() error {
		if s.Refresh(t, deployment); deployment.Status.ObservedGeneration != deployment.Generation {
			return fmt.Errorf("status %+v", deployment.Status)
		}
		return nil
	})
	marker := framework.ScheduledRestart(name)
	marker.Namespace = s.namespace
	due := s.clock.Now(t).Add(2 * time.Second).Truncate(time.Second)
	marker.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: due.UTC().Format(time.RFC3339)}
	marker.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Suspend: true}
	s.Apply(t, marker)
	framework.Eventually(t, name+" is restarted", func() error {
		s.Refresh(t, marker)
		if history := marker.Status.History; len(history) != 1 || history[0].Outcome != tidekeeperv1.OutcomeSucceeded {
			return fmt.Errorf("status %+v", marker.Status)
		}
		return nil
	})
}
