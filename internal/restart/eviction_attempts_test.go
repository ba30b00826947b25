// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// TestLongestRefused checks that longestRefused considers only restarts in progress, and ignores
// restarts that have evicted a pod since the rejection.
func TestLongestRefused(t *testing.T) {
	now := time.Date(2026, 6, 10, 3, 0, 0, 0, time.UTC)
	e := &evictionAttempts{newMemories()}
	refused := func(name string, since time.Duration, refusal string) *tidekeeperv1.ScheduledRestart {
		r := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name)}}
		r.Status.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: metav1.Time{Time: now}}
		e.note(types.NamespacedName{Name: name}, r, func(a *decision.Attempts) {
			a.Refusal, a.RefusedSince = refusal, now.Add(-since)
		})
		return r
	}
	want := func(want time.Duration) {
		t.Helper()
		if got := e.longestRefused(now); got != want {
			t.Errorf("refused for %s, want %s", got, want)
		}
	}
	want(0)
	refused("short", time.Minute, "budget b")
	ended := refused("long", time.Hour, "budget b")
	refused("evicted", 2*time.Hour, "")
	want(time.Hour)
	ended.Status.Active = nil
	e.of(types.NamespacedName{Name: "long"}, ended)
	want(time.Minute)
	e.memories.forget(types.NamespacedName{Name: "short"})
	want(0)
}
