// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
)

// TestQuietBetweenMisses checks that the intervals between records of missed ticks double from a
// minute to a quarter of an hour.
func TestQuietBetweenMisses(t *testing.T) {
	for _, tt := range []struct {
		misses int32
		want   time.Duration
	}{{0, 0}, {2, 0}, {3, time.Minute}, {4, 2 * time.Minute}, {6, 8 * time.Minute}, {7, 15 * time.Minute}, {1000, 15 * time.Minute}} {
		s := stateAt("03:00:01", func(s *state) { s.status.ConsecutiveMisses = tt.misses })
		m := &misses{state: s, history: &history{past: []tidekeeperv1.RestartRecord{{CompletedTime: *metaAt("03:00:00")}}, now: s.now}}
		want := time.Time{}
		if tt.want > 0 {
			want = at("03:00:00").Add(tt.want)
		}
		if got := m.quietUntil(); !got.Equal(want) {
			t.Errorf("after %d misses it is quiet until %s, want %s", tt.misses, got, want)
		}
		if m.end(); !m.quietUntil().IsZero() {
			t.Errorf("after the end of %d misses it is quiet", tt.misses)
		}
	}
}

// TestHistoryKeeps checks that the latest history entry comes first, and that the oldest entries
// are dropped.
func TestHistoryKeeps(t *testing.T) {
	record := func(clock string) tidekeeperv1.RestartRecord {
		return tidekeeperv1.RestartRecord{ScheduledTime: *metaAt(clock)}
	}
	h := &history{past: []tidekeeperv1.RestartRecord{record("02:00:00"), record("01:00:00")}, now: at("05:00:00")}
	before := h.past
	h.record(record("03:00:00"))
	h.record(record("04:00:00"))
	var got []string
	for _, r := range h.keep(3) {
		got = append(got, r.ScheduledTime.UTC().Format("15:04"))
	}
	if diff := cmp.Diff([]string{"04:00", "03:00", "02:00"}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if !before[0].ScheduledTime.Equal(metaAt("02:00:00")) {
		t.Error("the records of the input are changed")
	}
	if last, ok := h.lastRecorded(); !ok || !last.Equal(h.now) {
		t.Errorf("the last tick was recorded at %s, %t", last, ok)
	}
}

// TestEndingCountsFailures checks that a failed restart is counted, and that a successful restart
// resets the count unless failures have stopped the schedule.
func TestEndingCountsFailures(t *testing.T) {
	for _, tt := range []struct {
		before  int32
		outcome tidekeeperv1.Outcome
		want    int32
	}{
		{2, tidekeeperv1.OutcomeFailed, 3}, {2, tidekeeperv1.OutcomeSucceeded, 0}, {3, tidekeeperv1.OutcomeSucceeded, 3}, {2, tidekeeperv1.OutcomeSkipped, 2},
	} {
		s := stateAt("03:10:00", func(s *state) {
			s.status.ConsecutiveFailures = tt.before
			s.status.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: *metaAt("03:00:00"), StartedTime: *metaAt("03:00:00"), Trigger: tidekeeperv1.TriggerSchedule}
		})
		past := &history{now: s.now}
		e := &ending{state: s, active: &activeRestart{s}, history: past, change: &changeTrigger{state: s}, budget: &budgetGate{outlived: true}}
		e.complete(tt.outcome, "", "")
		if s.status.ConsecutiveFailures != tt.want || s.status.Active != nil || e.budget.outlived || len(past.added) != 1 {
			t.Errorf("%s after %d failures: %+v with %d records, want %d failures", tt.outcome, tt.before, s.status, len(past.added), tt.want)
		}
	}
}

// TestSendingConfirms checks that a tick is sent only after the queries were run and then the
// freezes were read from the API server.
func TestSendingConfirms(t *testing.T) {
	for _, tt := range []struct {
		name        string
		query       queryGate
		freezesLive bool
		want        Need
	}{
		{"not asked", queryGate{queried: true}, true, NeedAnswer},
		{"neither asked", queryGate{queried: true}, false, NeedAnswer},
		{"freezes of the cache", queryGate{}, false, NeedLiveFreezes},
		{"both asked", queryGate{queried: true, answer: &Answer{At: at("03:00:00")}, now: at("03:00:01")}, true, NeedNothing},
	} {
		s := &sending{query: &tt.query, freezesLive: tt.freezesLive}
		if need := s.send(at("03:00:00"), at("03:05:00")); need != tt.want || !s.tick.Equal(at("03:00:00")) || !s.due.Equal(at("03:05:00")) {
			t.Errorf("%s: needs %d, want %d; it sends %s, due %s", tt.name, need, tt.want, s.tick, s.due)
		}
	}
}

// TestEvictionPieces checks that a restart by eviction starts only if a pod is older than the tick,
// and that a rejected eviction is retried at growing intervals.
func TestEvictionPieces(t *testing.T) {
	old, young := evict.Pod{Name: "a", Created: at("02:00:00")}, evict.Pod{Name: "b", Created: at("03:30:00")}
	c := &candidate{tick: at("03:00:00"), trigger: tidekeeperv1.TriggerSchedule}
	for _, tt := range []struct {
		pods []evict.Pod
		want bool
	}{{nil, true}, {[]evict.Pod{young}, false}, {[]evict.Pod{young, old}, true}} {
		if got := (&eviction{pods: &Pods{Active: tt.pods}}).replaces(c); got != tt.want {
			t.Errorf("of %+v it replaces a pod: %t, want %t", tt.pods, got, tt.want)
		}
	}
	for refusedFor, want := range map[time.Duration]time.Duration{0: firstRetry, 2 * time.Minute: 30 * time.Second, time.Hour: time.Minute} {
		e := &eviction{state: stateAt("04:00:00"), attempts: Attempts{Refusal: "budget b", RefusedAt: at("04:00:00"), RefusedSince: at("04:00:00").Add(-refusedFor)}}
		if got := e.retryAt(); !got.Equal(at("04:00:00").Add(want)) {
			t.Errorf("refused for %s, it is tried again at %s, want after %s", refusedFor, got, want)
		}
	}
}

// TestEditsStartOver checks that an edit of the spec resets the numbers of failures and missed
// ticks, and the due times of restarts for pod age and changes.
func TestEditsStartOver(t *testing.T) {
	s := stateAt("03:00:00", func(s *state) {
		s.restart.Generation = 2
		s.status.ObservedGeneration, s.status.ConsecutiveFailures, s.status.ConsecutiveMisses = 1, 2, 2
		s.status.NextAgeTime, s.status.LastAgeTime, s.status.NextChangeTime = metaAt("04:00:00"), metaAt("01:00:00"), &metav1.Time{Time: at("05:00:00")}
	})
	all := &triggers{
		state: s, schedule: scheduleTrigger{state: s, history: &history{}}, age: ageTrigger{state: s}, change: changeTrigger{state: s, interval: &interval{state: s}},
	}
	e := &edits{state: s, triggers: all, misses: &misses{state: s}, ending: &ending{state: s}}
	if base := e.observe(); !base.Equal(s.now) {
		t.Errorf("ticks count from %s, want from now", base)
	}
	want := &tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 2, ObservedTargetRef: &tidekeeperv1.TargetRef{}, LastAgeTime: metaAt("01:00:00")}
	if diff := cmp.Diff(want, s.status); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
}
