// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

func TestStatus(t *testing.T) {
	later := metav1.Time{Time: noon.Add(time.Hour)}
	for _, tt := range []struct {
		name   string
		change func(*tidekeeperv1.Freeze)
		at     time.Duration
		// ready and inForce are the expected conditions Ready and InForce, each in the form
		// status/reason.
		ready, inForce string
		held           tidekeeperv1.HeldBack
		next           time.Duration
	}{
		{name: "in force", ready: "True/InForce", inForce: "True/InForce", held: tidekeeperv1.HeldBack{Restarts: 3, MissedTicks: 2}, next: 4 * time.Hour},
		{
			name: "pending", change: func(f *tidekeeperv1.Freeze) { f.Spec.From = &later },
			ready: "True/Pending", inForce: "False/Pending", next: time.Hour,
		},
		{
			name: "ended: what it has held back stays", at: 4 * time.Hour,
			change: func(f *tidekeeperv1.Freeze) { f.Status.HeldBack = tidekeeperv1.HeldBack{Restarts: 9} },
			ready:  "True/Ended", inForce: "False/Ended", held: tidekeeperv1.HeldBack{Restarts: 9},
		},
		{
			name: "what the histories do not reach any more was missed nevertheless", change: func(f *tidekeeperv1.Freeze) { f.Status.HeldBack.MissedTicks = 8 },
			ready: "True/InForce", inForce: "True/InForce", held: tidekeeperv1.HeldBack{Restarts: 3, MissedTicks: 8}, next: 4 * time.Hour,
		},
		{
			name: "its selector cannot be used", change: func(f *tidekeeperv1.Freeze) {
				f.Spec.NamespaceSelector = &tidekeeperv1.NamespaceSelector{MatchExpressions: []tidekeeperv1.NamespaceSelectorRequirement{{Key: "a", Operator: "Like"}}}
			},
			ready: "False/InvalidSelector", inForce: "True/InForce", held: tidekeeperv1.HeldBack{Restarts: 3, MissedTicks: 2}, next: 4 * time.Hour,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := freezeUntil(4)
			if tt.change != nil {
				tt.change(f)
			}
			now := noon.Add(tt.at)
			status := newStatus(f, tidekeeperv1.HeldBack{Restarts: 3, MissedTicks: 2}, now)
			of := func(conditionType string) string {
				c := meta.FindStatusCondition(status.Conditions, conditionType)
				return string(c.Status) + "/" + c.Reason
			}
			if got := of("Ready"); got != tt.ready {
				t.Errorf("Ready is %s, want %s", got, tt.ready)
			}
			if got := of("InForce"); got != tt.inForce {
				t.Errorf("InForce is %s, want %s", got, tt.inForce)
			}
			if diff := cmp.Diff(tt.held, status.HeldBack); diff != "" {
				t.Errorf("held back (-want +got):\n%s", diff)
			}
			want := time.Time{}
			if tt.next > 0 {
				want = noon.Add(tt.next)
			}
			if next := nextChange(period.Of(f), now); !next.Equal(want) {
				t.Errorf("the next change is at %s, want %s", next, want)
			}
			// An unchanged status must not be written again.
			f.Status = status
			again := newStatus(f, tidekeeperv1.HeldBack{Restarts: 3, MissedTicks: 2}, now.Add(time.Minute))
			if at := whenToWrite(&f.Status, &again, time.Time{}, now.Add(time.Minute)); !at.IsZero() {
				t.Errorf("the same status is written again, at %s", at)
			}
		})
	}
}

// TestWhenToWrite checks that a status that differs only in counts is written at most every ten
// seconds, and that any other change is written immediately.
func TestWhenToWrite(t *testing.T) {
	f := freezeUntil(4)
	before := newStatus(f, tidekeeperv1.HeldBack{Restarts: 1}, noon)
	f.Status = before
	counted := newStatus(f, tidekeeperv1.HeldBack{Restarts: 2}, noon)
	ended := newStatus(f, tidekeeperv1.HeldBack{}, noon.Add(4*time.Hour))
	for _, tt := range []struct {
		name      string
		after     tidekeeperv1.FreezeStatus
		last, now time.Duration
		want      time.Duration
	}{
		{"the first count", counted, -time.Hour, 0, 0},
		{"soon after the last write", counted, -3 * time.Second, 0, 7 * time.Second},
		{"after the clock was set back", counted, time.Minute, 0, 0},
		{"its end", ended, -time.Second, 0, 0},
	} {
		if at := whenToWrite(&before, &tt.after, noon.Add(tt.last), noon.Add(tt.now)); !at.Equal(noon.Add(tt.want)) {
			t.Errorf("%s: written at %s, want %s", tt.name, at, noon.Add(tt.want))
		}
	}
}

func TestHeldBackOfARestart(t *testing.T) {
	restart := &tidekeeperv1.ScheduledRestart{Status: tidekeeperv1.ScheduledRestartStatus{
		Conditions: []metav1.Condition{{Type: "Ready", Reason: "Frozen"}},
		History: []tidekeeperv1.RestartRecord{
			{Reason: "Frozen", CompletedTime: metav1.Time{Time: noon.Add(2 * time.Hour)}, EarlierTicks: 4},
			{Reason: "Frozen", CompletedTime: metav1.Time{Time: noon}},
			{Reason: "BudgetExhausted", CompletedTime: metav1.Time{Time: noon}},
			{Reason: "Frozen", CompletedTime: metav1.Time{Time: noon.Add(-time.Hour)}},
		},
	}}
	var held tidekeeperv1.HeldBack
	addHeldBack(&held, restart, period.Of(freezeUntil(4)))
	if diff := cmp.Diff(tidekeeperv1.HeldBack{Restarts: 1, MissedTicks: 6}, held); diff != "" {
		t.Errorf("held back (-want +got):\n%s", diff)
	}
}
