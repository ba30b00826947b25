// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestEventsOfDifferentNodes checks that two corrections some seconds apart result in two events,
// each about its own node.
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

// TestLongEvent checks that an event with an overlong note is recorded, and that the note is
// shortened in the log as well.
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

// TestOversizedRequest checks that an invalid restart request restarts nothing, regardless of its
// length. A valid request that replaces it must be served, and so must the schedule's ticks.
func TestOversizedRequest(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "oversized", 1)
	d := workload(t, "Deployment", "oversized")
	r := suspendedRestart(t, "oversized")
	// The value begins like a time, and is about as long as the API server allows for all
	// annotations of an object together.
	huge := time.Now().UTC().Format(time.RFC3339) + strings.Repeat(" ", 255<<10)
	cluster.Change(t, r, func() { metav1.SetMetaDataAnnotation(&r.ObjectMeta, tidekeeperv1.RestartNowAnnotation, huge) })
	cluster.EventuallyEvent(t, "ScheduledRestart", "oversized", "Warning InvalidRequest: the annotation "+tidekeeperv1.RestartNowAnnotation)
	if cluster.Refresh(t, r); r.Status.Active != nil || len(r.Status.History) > 0 || restartedAt(t, d) != "" {
		t.Errorf("it was restarted: %+v", r.Status)
	}
	eventuallyOutcome(t, r, cluster.RequestRestart(t, r, time.Now()), tidekeeperv1.OutcomeSucceeded, "")
}
