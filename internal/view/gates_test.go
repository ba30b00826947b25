// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// TestObstacles checks that a request is reported as missed if a gate opens only after the
// request's deadline. The deadline is counted from the time at which the window opens.
func TestObstacles(t *testing.T) {
	gates := Gates{Gates: []decision.Gate{
		{Name: decision.GateSchedule, Message: "it is suspended"}, {Name: decision.GateTarget, Open: true, Message: "it exists"},
		{Name: decision.GateFreeze, Message: "Freeze x", Opens: noon.Add(2 * time.Hour)},
		{Name: decision.GateWindow, Message: "no window is open", Opens: noon.Add(time.Hour)},
		{Name: decision.GateHealth, Message: "it is being rolled out"}, {Name: decision.GateProgress, Message: "a restart is in progress"},
	}}
	const missed = "Freeze x, and it is missed at its deadline, 2026-11-21T13:10:00Z"
	for _, tc := range []struct {
		name     string
		deadline int32
		active   *tidekeeperv1.ActiveRestart
		want     []string
	}{
		{"a freeze ends after the deadline", 600, nil, []string{missed, "no window is open", "it is being rolled out"}},
		{"a freeze ends before it", 3600, nil, []string{"Freeze x", "no window is open", "it is being rolled out"}},
		{"the rollout is that of the one in progress", 600, &tidekeeperv1.ActiveRestart{}, []string{missed, "no window is open"}},
	} {
		r := aRestart("web", "@daily", func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.StartingDeadlineSeconds, r.Status.Active = tc.deadline, tc.active
			r.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 13 * * *", DurationSeconds: 600}}
		})
		if diff := cmp.Diff(tc.want, gates.Obstacles(&r, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
