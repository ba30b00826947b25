// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestStageHistograms checks that the histograms show the numbers in the summaries, and that even a
// single pod is visible.
func TestStageHistograms(t *testing.T) {
	if got := stageHistogramsOf(nil); got != nil {
		t.Errorf("histograms of no pods: %+v", got)
	}
	var startups []view.Startup
	for i := range 1000 {
		seconds := int64(0)
		if i == 0 {
			seconds = 45
		}
		startups = append(startups, view.Startup{Stages: []view.StartupStage{{Name: podtimeline.Scheduled, Seconds: seconds, Done: true}}})
	}
	for _, h := range stageHistogramsOf(startups) {
		sum := 0
		for i, bar := range h.Bars {
			if sum += bar.Pods; bar.Pods != h.Classes[i].Pods || (bar.Pods > 0) != (bar.Height >= 3) || bar.Y+bar.Height != histogramHeight || bar.Y < 0 || bar.X+bar.Width > h.Width {
				t.Errorf("%s: a column is not that of %+v, or outside, or too small: %+v", h.Text, h.Classes[i], bar)
			}
		}
		want := 0
		if h.Stage == podtimeline.Scheduled {
			want = 1000
		}
		if sum != want || (want > 0) != strings.Contains(h.Title, "1000 pods, median <1s, worst 45s") {
			t.Errorf("%s: %d pods, want %d: %s", h.Text, sum, want, h.Title)
		}
	}
}
