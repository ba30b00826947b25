// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// StageTimes collects each stage's durations over many pods. The zero value is empty and ready to
// use. The memory that it uses depends on the number of distinct durations, not on the number of
// pods.
type StageTimes struct {
	pods map[podtimeline.StageName]map[int64]int // number of pods by stage and duration in seconds
}

// StageSummary summarizes a stage's durations over many pods. Durations are in whole seconds, and
// may be off by one second.
type StageSummary struct {
	Stage podtimeline.StageName `json:"stage"`
	// Pods is the number of pods for which the stage's duration is known.
	Pods          int   `json:"pods"`
	MedianSeconds int64 `json:"medianSeconds"`
	MaxSeconds    int64 `json:"maxSeconds"`
	// Classes counts the pods by ranges of the stage's duration.
	Classes []StageClass `json:"classes"`
}

// StageClass counts the pods for which a stage took at least FromSeconds and less than ToSeconds.
// ToSeconds is 0 for the last class, which has no upper bound.
type StageClass struct {
	FromSeconds int64 `json:"fromSeconds"`
	ToSeconds   int64 `json:"toSeconds,omitempty"`
	Pods        int   `json:"pods"`
}

// stageClasses lists the lower bounds of the duration classes in seconds.
var stageClasses = []int64{0, 1, 2, 5, 10, 30, 60, 300}

// Add adds the durations of a pod's completed stages. It omits stages with an unknown start or end,
// as the manager's metrics do.
func (t *StageTimes) Add(s *Startup) {
	startEstimated := false
	for _, stage := range s.Stages {
		if stage.Done && !stage.Estimated && !startEstimated {
			t.count(stage.Name, stage.Seconds)
		}
		startEstimated = stage.Estimated
	}
}

func (t *StageTimes) count(stage podtimeline.StageName, seconds int64) {
	if t.pods == nil {
		t.pods = map[podtimeline.StageName]map[int64]int{}
	}
	if t.pods[stage] == nil {
		t.pods[stage] = map[int64]int{}
	}
	t.pods[stage][seconds]++
}

// Summaries returns the summaries of all stages, in the order of the start-up.
func (t *StageTimes) Summaries() []StageSummary {
	var list []StageSummary
	for _, name := range podtimeline.StageNames() {
		s := StageSummary{Stage: name}
		for i, from := range stageClasses {
			c := StageClass{FromSeconds: from}
			if i+1 < len(stageClasses) {
				c.ToSeconds = stageClasses[i+1]
			}
			s.Classes = append(s.Classes, c)
		}
		for _, n := range t.pods[name] {
			s.Pods += n
		}
		counted, class := 0, 0
		for _, seconds := range slices.Sorted(maps.Keys(t.pods[name])) {
			n := t.pods[name][seconds]
			if half := (s.Pods + 1) / 2; counted < half && counted+n >= half {
				s.MedianSeconds = seconds
			}
			counted += n
			s.MaxSeconds = seconds
			for class+1 < len(s.Classes) && seconds >= s.Classes[class+1].FromSeconds {
				class++
			}
			s.Classes[class].Pods += n
		}
		list = append(list, s)
	}
	return list
}

// StageText returns the display name of a start-up stage.
func StageText(name podtimeline.StageName) string { return strings.ReplaceAll(string(name), "_", " ") }

// From formats the lower bound of the duration class, such as 5s.
func (c *StageClass) From() string { return FormatLength(Seconds(c.FromSeconds)) }

// Text formats the duration class, such as 2–4s.
func (c *StageClass) Text() string {
	switch {
	case c.ToSeconds == 0:
		return c.From() + " or more"
	case c.ToSeconds-c.FromSeconds == 1:
		return c.From()
	case c.ToSeconds > 60:
		return c.From() + " to " + FormatLength(Seconds(c.ToSeconds))
	default:
		return fmt.Sprintf("%d–%ds", c.FromSeconds, c.ToSeconds-1)
	}
}
