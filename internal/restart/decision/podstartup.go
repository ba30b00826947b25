// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"math"
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// podStartup summarizes the startup times of a restart's new pods, and compares them with the last
// restart in the history that has a summary. It returns nil if there are no pods.
func podStartup(took []time.Duration, history []tidekeeperv1.RestartRecord) *tidekeeperv1.PodStartup {
	if len(took) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(took))
	s := &tidekeeperv1.PodStartup{
		Pods: int32(len(sorted)),
		// For an even number of values, the lower middle value is used, so that the median is the
		// startup time of an actual pod.
		MedianSeconds: wholeSeconds(sorted[(len(sorted)-1)/2]),
		MaxSeconds:    wholeSeconds(sorted[len(sorted)-1]),
	}
	for _, r := range history {
		if before := r.PodStartup; before != nil {
			s.MedianChangeSeconds = new(s.MedianSeconds - before.MedianSeconds)
			s.MaxChangeSeconds = new(s.MaxSeconds - before.MaxSeconds)
			break
		}
	}
	return s
}

func wholeSeconds(d time.Duration) int32 {
	return int32(min(max(0, d/time.Second), math.MaxInt32))
}
