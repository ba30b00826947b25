// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"
)

// TestPace checks that a hot loop is detected by the number of its requests, regardless of the
// machine's speed. Requests that slow down, or that are as frequent in the baseline, are no hot
// loop.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		before int
		// counts lists the number of requests in successive periods of a second.
		counts []int
		// periods is the number of periods needed for a verdict.
		periods int
		hot     bool
	}{
		"nothing":                          {0, []int{0}, 1, false},
		"a few":                            {0, []int{3}, 1, false},
		"an idle machine":                  {0, []int{100}, 1, true},
		"a busy machine":                   {0, []int{8, 7, 9}, 3, true},
		"a very busy machine":              {0, []int{4, 4, 4, 4, 4, 4}, 6, true},
		"a loop that another load slows":   {0, []int{12, 7, 6}, 3, true},
		"it waits longer and longer":       {0, []int{20, 9}, 2, false},
		"it ends":                          {0, []int{19, 0}, 2, false},
		"as undisturbed":                   {15, []int{15}, 1, false},
		"little more than undisturbed":     {15, []int{18}, 1, false},
		"more than undisturbed":            {15, []int{26, 26}, 2, true},
		"more than undisturbed, to an end": {15, []int{26, 15}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Pace{Quiet: time.Second, Before: tc.before}
			periods := 0
			for ; p.Open(); periods++ {
				if periods == len(tc.counts) {
					t.Fatal("it is observed for another period")
				}
				p.Add(tc.counts[periods])
			}
			if periods != tc.periods || p.Hot() != tc.hot {
				t.Errorf("after %d periods it is hot: %t, want after %d: %t", periods, p.Hot(), tc.periods, tc.hot)
			}
			if problems := p.busy("reads", 2); len(problems) > 0 != tc.hot {
				t.Errorf("problems: %v", problems)
			}
		})
	}
}
