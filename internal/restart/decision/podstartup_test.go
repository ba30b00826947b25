// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

func TestStartupOf(t *testing.T) {
	lengths := func(all ...int) (took []time.Duration) {
		for _, n := range all {
			took = append(took, time.Duration(n)*time.Second)
		}
		return took
	}
	with := func(median, worst int32) tidekeeperv1.RestartRecord {
		return tidekeeperv1.RestartRecord{Outcome: tidekeeperv1.OutcomeSucceeded, PodStartup: &tidekeeperv1.PodStartup{Pods: 1, MedianSeconds: median, MaxSeconds: worst}}
	}
	without := tidekeeperv1.RestartRecord{Outcome: tidekeeperv1.OutcomeFailed}
	for _, tt := range []struct {
		name    string
		took    []time.Duration
		history []tidekeeperv1.RestartRecord
		want    *tidekeeperv1.PodStartup
	}{
		{name: "no pods, no summary", took: lengths(), history: []tidekeeperv1.RestartRecord{with(1, 2)}},
		{name: "one pod", took: lengths(4), want: &tidekeeperv1.PodStartup{Pods: 1, MedianSeconds: 4, MaxSeconds: 4}},
		{name: "in less than a second", took: []time.Duration{0}, want: &tidekeeperv1.PodStartup{Pods: 1}},
		{name: "in any order", took: lengths(9, 1, 4), want: &tidekeeperv1.PodStartup{Pods: 3, MedianSeconds: 4, MaxSeconds: 9}},
		{name: "of an even number the lower median", took: lengths(9, 1, 4, 5), want: &tidekeeperv1.PodStartup{Pods: 4, MedianSeconds: 4, MaxSeconds: 9}},
		{
			name: "slower than before", took: lengths(4, 9), history: []tidekeeperv1.RestartRecord{with(2, 3), with(50, 50)},
			want: &tidekeeperv1.PodStartup{Pods: 2, MedianSeconds: 4, MaxSeconds: 9, MedianChangeSeconds: new(int32(2)), MaxChangeSeconds: new(int32(6))},
		},
		{
			name: "faster, and as fast as before", took: lengths(1, 3), history: []tidekeeperv1.RestartRecord{with(2, 3)},
			want: &tidekeeperv1.PodStartup{Pods: 2, MedianSeconds: 1, MaxSeconds: 3, MedianChangeSeconds: new(int32(-1)), MaxChangeSeconds: new(int32(0))},
		},
		{
			name: "records without a summary are skipped", took: lengths(4), history: []tidekeeperv1.RestartRecord{without, without, with(2, 2)},
			want: &tidekeeperv1.PodStartup{Pods: 1, MedianSeconds: 4, MaxSeconds: 4, MedianChangeSeconds: new(int32(2)), MaxChangeSeconds: new(int32(2))},
		},
		{name: "no earlier record has a summary", took: lengths(4), history: []tidekeeperv1.RestartRecord{without}, want: &tidekeeperv1.PodStartup{Pods: 1, MedianSeconds: 4, MaxSeconds: 4}},
		{name: "a clock that is wrong", took: []time.Duration{-time.Second, 99 * 365 * 24 * time.Hour}, want: &tidekeeperv1.PodStartup{Pods: 2, MaxSeconds: 1<<31 - 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			took := append([]time.Duration(nil), tt.took...)
			if diff := cmp.Diff(tt.want, podStartup(tt.took, tt.history)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(took, tt.took); diff != "" {
				t.Errorf("the input was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestStartupIsRecorded checks that the history and the event of a successful restart contain the
// summary of startup times, with the change since the previous restart, even if the history keeps
// only one entry.
func TestStartupIsRecorded(t *testing.T) {
	before := tidekeeperv1.RestartRecord{PodStartup: &tidekeeperv1.PodStartup{Pods: 3, MedianSeconds: 2, MaxSeconds: 9}}
	finish := func(change func(*workload.State)) tidekeeperv1.RestartRecord {
		d := Decide(makeInputs(active, withTarget(sentTo), withTarget(change), now("03:02:00"),
			withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.HistoryLimit = 1 }),
			func(in *Input) {
				in.Restart.Status.History, in.Live = []tidekeeperv1.RestartRecord{before}, true
				in.PodStartups = []time.Duration{4 * time.Second, 5 * time.Second, 65 * time.Second}
			}))
		if len(d.Records) != 1 || len(d.Status.History) != 1 {
			t.Fatalf("records %+v, history %+v; want one each", d.Records, d.Status.History)
		}
		if diff := cmp.Diff(d.Records[0], d.Status.History[0]); diff != "" {
			t.Errorf("the event and the history differ (-event +history):\n%s", diff)
		}
		return d.Records[0]
	}
	record := finish(complete)
	want := &tidekeeperv1.PodStartup{Pods: 3, MedianSeconds: 5, MaxSeconds: 65, MedianChangeSeconds: new(int32(3)), MaxChangeSeconds: new(int32(56))}
	if diff := cmp.Diff(want, record.PodStartup); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, _, note := Event(tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}, &record)
	if want := "; new pods were ready in 5s (+3s), at worst 65s (+56s)"; !strings.HasSuffix(note, want) {
		t.Errorf("the event says %q, want it to end in %q", note, want)
	}
	if failed := finish(func(t *workload.State) { t.Rollout.Exceeded = true }); failed.PodStartup != nil {
		t.Errorf("a failure has a summary: %+v", failed.PodStartup)
	}
}
