// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestAllDecided checks that AllDecided reports each kind of wrong history, and nothing for a
// correct history.
func TestAllDecided(t *testing.T) {
	first := time.Date(2026, 11, 21, 3, 0, 7, 0, time.UTC)
	second := first.Add(time.Minute)
	started := func(at time.Time) tidekeeperv1.RestartRecord {
		return tidekeeperv1.RestartRecord{ScheduledTime: metav1.Time{Time: at}, StartedTime: &metav1.Time{Time: at.Add(time.Second)}, Outcome: tidekeeperv1.OutcomeSucceeded}
	}
	missed := func(at time.Time) tidekeeperv1.RestartRecord {
		return tidekeeperv1.RestartRecord{ScheduledTime: metav1.Time{Time: at}, Outcome: tidekeeperv1.OutcomeMissed}
	}
	ticks := []time.Time{first, second}
	const one, two, now = "2026-11-21T03:00:07Z", "2026-11-21T03:01:07Z", "2026-11-21T03:01:09Z"
	for _, tt := range []struct {
		name        string
		history     []tidekeeperv1.RestartRecord
		restartedAt []string
		want        []string
	}{
		{"each once", []tidekeeperv1.RestartRecord{started(second), started(first)}, []string{one, two}, nil},
		{"one was missed", []tidekeeperv1.RestartRecord{started(second), missed(first)}, []string{two}, nil},
		{"one left no trace", []tidekeeperv1.RestartRecord{started(second)}, []string{two},
			[]string{"0 records say what became of the tick " + one + ", want one"}},
		{"one was done twice, and recorded twice", []tidekeeperv1.RestartRecord{started(second), started(second), started(first)}, []string{one, two, two},
			[]string{"2 records say what became of the tick " + two + ", want one", "2 records say that the tick " + two + " was started", "two templates were restarted for " + two}},
		{"one was sent again with another time", []tidekeeperv1.RestartRecord{started(second), started(first)}, []string{one, two, now},
			[]string{"a template was restarted for " + now + ", and no record says so", "a template was restarted for " + now + ", which is not a tick"}},
		{"one was never sent", []tidekeeperv1.RestartRecord{started(second), started(first)}, []string{one},
			[]string{"the history says that the restart for " + two + " succeeded, and no template bears it"}},
		{"one was not recorded", []tidekeeperv1.RestartRecord{started(second), missed(first)}, []string{one, two},
			[]string{"a template was restarted for " + one + ", and no record says so"}},
		{"another tick", []tidekeeperv1.RestartRecord{missed(first.Add(time.Second)), started(second), started(first)}, []string{one, two},
			[]string{"a record names the tick 2026-11-21T03:00:08Z, which did not exist"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, AllDecided(ticks, tt.history, tt.restartedAt)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
