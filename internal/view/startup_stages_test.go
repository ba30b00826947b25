// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

func TestStageTimes(t *testing.T) {
	var times StageTimes
	pod := StartupOf(aStartedPod(), nil, noon.Add(time.Hour))
	times.Add(&pod)
	got := map[podtimeline.StageName]string{}
	for _, s := range times.Summaries() {
		var classes []string
		for _, c := range s.Classes {
			if c.Pods > 0 {
				classes = append(classes, fmt.Sprint(c.Text(), ":", c.Pods))
			}
		}
		got[s.Stage] = fmt.Sprint(s.Pods, " ", s.MedianSeconds, " ", s.MaxSeconds, " ", strings.Join(classes, " "))
	}
	want := map[podtimeline.StageName]string{
		podtimeline.Scheduled: "1 4 4 2–4s:1", podtimeline.Initialized: "1 0 0 <1s:1", podtimeline.ContainersStarted: "1 6 6 5–9s:1",
		podtimeline.ContainersReady: "1 1 1 1s:1", podtimeline.Ready: "1 0 0 <1s:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var texts []string
	for _, c := range times.Summaries()[0].Classes {
		texts = append(texts, c.From()+" "+c.Text())
	}
	if diff := cmp.Diff([]string{"<1s <1s", "1s 1s", "2s 2–4s", "5s 5–9s", "10s 10–29s", "30s 30–59s", "60s 60s to 5m", "5m 5m or more"}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStageTimesLeaveOutWhatIsNotKnown checks that a stage with an estimated end, the next stage,
// and an incomplete stage are not counted.
func TestStageTimesLeaveOutWhatIsNotKnown(t *testing.T) {
	s := Startup{Stages: []StartupStage{
		{Name: podtimeline.Scheduled, Seconds: 1, Done: true}, {Name: podtimeline.Initialized, Seconds: 2, Done: true, Estimated: true},
		{Name: podtimeline.ContainersStarted, Seconds: 3, Done: true}, {Name: podtimeline.ContainersReady, Seconds: 4},
	}}
	var times StageTimes
	times.Add(&s)
	for _, summary := range times.Summaries() {
		if want := map[podtimeline.StageName]int{podtimeline.Scheduled: 1}[summary.Stage]; summary.Pods != want {
			t.Errorf("%s: %d pods, want %d", summary.Stage, summary.Pods, want)
		}
	}
}

// TestStageTimesHaveEachPodOnce checks with random durations that each pod is counted in exactly
// one class, and that the median and the maximum are correct.
func TestStageTimesHaveEachPodOnce(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not for secrets
		var times StageTimes
		var all []int64
		for range 1 + random.IntN(30) {
			s := Startup{Stages: []StartupStage{{Name: podtimeline.Scheduled, Seconds: int64(random.IntN(1 << random.IntN(12))), Done: true}}}
			all = append(all, s.Stages[0].Seconds)
			times.Add(&s)
		}
		slices.Sort(all)
		got, sum := times.Summaries()[0], 0
		for _, c := range got.Classes {
			in := 0
			for _, seconds := range all {
				if seconds >= c.FromSeconds && (seconds < c.ToSeconds || c.ToSeconds == 0) {
					in++
				}
			}
			if sum += c.Pods; c.Pods != in {
				t.Fatalf("seed %d: %d pods in the class %s, want %d of %v", seed, c.Pods, c.Text(), in, all)
			}
		}
		if got.Pods != len(all) || sum != len(all) || got.MedianSeconds != all[(len(all)-1)/2] || got.MaxSeconds != all[len(all)-1] {
			t.Fatalf("seed %d: %+v of %v", seed, got, all)
		}
	}
}
