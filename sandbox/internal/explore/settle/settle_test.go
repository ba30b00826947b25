// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// TestQuiet checks that the quiet time is short only after the last expected write in a step
// without a fault, and longest in the last step.
func TestQuiet(t *testing.T) {
	write := []byte(`{"verb":"update","resource":"claims","status":200,"upstream":200}`)
	last := observe.Call{Verb: "update", Resource: "claims"}
	base := &baseline.Baseline{Quiet: 9 * time.Second, Steps: []baseline.BaseStep{
		{Quiet: 2 * time.Second}, {Quiet: 3 * time.Second, Last: last, Lasts: 2}, {Quiet: 4 * time.Second},
	}}
	for _, tc := range []struct {
		name   string
		step   int
		fault  *faults.Fault
		writes int
		want   time.Duration
	}{
		{name: "before the last write", step: 1, writes: 1, want: 3 * time.Second},
		{name: "after the last write", step: 1, writes: 2, want: lastQuiet},
		{name: "in the step of a fault", step: 1, fault: &faults.Fault{Kind: "CrashAfter", Step: 1, Until: 1}, writes: 2, want: 3 * time.Second},
		{name: "until a fault ends", step: 1, fault: &faults.Fault{Kind: "Freeze", Until: 1}, writes: 2, want: 3 * time.Second},
		{name: "in a step before the fault", step: 1, fault: &faults.Fault{Kind: "CrashAfter", Step: 2, Until: 2}, writes: 2, want: lastQuiet},
		{name: "without a write", step: 0, want: 2 * time.Second},
		{name: "at the end", step: 2, writes: 2, want: 9 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Settler{Log: &observe.Log{}, Base: base, Fault: tc.fault}
			for range tc.writes {
				if _, err := s.Log.Write(write); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Quiet(tc.step); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestRequestsOfAStep checks that only the current step's requests are counted.
func TestRequestsOfAStep(t *testing.T) {
	s := &Settler{Log: &observe.Log{}}
	line := []byte(`{"time":"` + time.Now().Format(time.RFC3339Nano) + `","verb":"get","resource":"claims","status":200}`)
	_, _ = s.Log.Write(line)
	if reads, _ := s.RequestsIn(time.Hour); reads != 1 {
		t.Errorf("%d reads, want 1", reads)
	}
	if n := s.Over(); n != 1 || s.Step != 1 {
		t.Errorf("step %d is over after %d requests", s.Step, n)
	}
	if reads, _ := s.RequestsIn(time.Hour); reads != 0 {
		t.Errorf("%d reads in a step that has none", reads)
	}
}
