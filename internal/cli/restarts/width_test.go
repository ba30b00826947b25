// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// TestNextIsNeverCut checks that the column NEXT is never cut, even on a narrow terminal with long
// names. It shows at least the time of the next start, or that a restart is due.
func TestNextIsNeverCut(t *testing.T) {
	at3 := func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextScheduleTime = at(noon.Add(15 * time.Hour)) }
	due := func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextScheduleTime = at(noon.Add(-13 * time.Hour)) }
	spread := func(r *tidekeeperv1.ScheduledRestart) { r.Spec.SpreadSeconds = 60 }
	for _, name := range []string{"web", "payment-service-restart-every-night"} {
		items := shown([]tidekeeperv1.ScheduledRestart{
			aRestart(name, "0 3 * * 1-5", ready("True", "Scheduled"), at3, spread), aRestart("b", "0 3 * * *", ready("True", "TargetUnhealthy"), due),
			aRestart("c", "0 3 * * *", ready("True", "Scheduled"), func(r *tidekeeperv1.ScheduledRestart) {
				r.Status.Active = &tidekeeperv1.ActiveRestart{StartedTime: *at(noon.Add(-time.Minute))}
			}),
		})
		for _, width := range []int{60, 80, 100, 160} {
			for _, namespaces := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s at %d, namespaces %t", name, width, namespaces), func(t *testing.T) {
					lines := lines(t, listTable(items, namespaces, false, noon, time.UTC), term.Screen{Terminal: true, Width: width})
					for i, want := range []string{"NEXT (UTC)", "tomorrow 03:0", "due", "under way for 60s"} {
						if !strings.Contains(lines[i], want) || strings.HasSuffix(lines[i], "…") {
							t.Errorf("NEXT is not %q: %s", want, lines[i])
						}
						if n := term.DisplayWidth(lines[i]); n > width {
							t.Errorf("%d columns: %s", n, lines[i])
						}
					}
					if width >= 100 && !strings.Contains(lines[0], "OUTCOME") {
						t.Errorf("no outcome: %s", lines[0])
					}
				})
			}
		}
	}
}
