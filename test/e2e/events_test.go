// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// Two corrections some seconds apart are two events, each about its own node.
func TestEventsOfDifferentNodes(t *testing.T) {
	cluster.StartManager(t)
	members := addMembers(t, "two-events", 2)
	cluster.Apply(t, pool("two-events"))
	healthyWith(t, "two-events", 2)
	for _, node := range members {
		relabel(t, node, map[string]string{"example.com/two-events": "by-hand"})
		eventuallyShape(t, node, shapeFrom("two-events"))
		framework.Eventually(t, "an event names node "+node, func() error {
			events := cluster.Events(t, "NodePool", "two-events")
			if !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, " DriftCorrected: ") && strings.Contains(e, node) }) {
				return diff("DriftCorrected "+node, events)
			}
			return nil
		})
	}
}

// A long event is not lost, and its note is shortened in the log, too.
func TestLongEvent(t *testing.T) {
	manager := cluster.StartManager(t)
	r := restartOf("Deployment", "long-event")
	r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: strings.Repeat("ä", 50<<10)}
	cluster.Apply(t, r)
	cluster.EventuallyEvent(t, "ScheduledRestart", "long-event", "Warning InvalidRequest: the annotation "+tidekeeperv1.RestartNowAnnotation)
	for _, e := range cluster.Events(t, "ScheduledRestart", "long-event") {
		if strings.Contains(e, "InvalidRequest") && len(e) > 1100 {
			t.Errorf("the event has %d bytes", len(e))
		}
	}
	for line := range strings.Lines(manager.Log()) {
		if len(line) > 4<<10 {
			t.Errorf("a line of the log has %d bytes: %s…", len(line), line[:200])
		}
	}
}
