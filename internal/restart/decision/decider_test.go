// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// fullInputs returns the inputs of very different decisions. Each field of the input is set in at
// least one input.
func fullInputs(t *testing.T) []Input {
	t.Helper()
	full := makeInputs(active, withTarget(sentTo), func(in *Input) {
		in.Restart.Annotations = map[string]string{tidekeeperv1.AppliedAnnotation: "{}"} // An opt-in created the ScheduledRestart, which has no owner, so it is orphaned.
		in.Windows = schedule.Windows{{Opens: in.Ticks, Length: time.Hour}}
		in.Invalid, in.Offset = errors.New("no schedule"), time.Minute
		in.Freezes = []period.Period{{Name: "night", From: at("02:00:00"), Until: at("05:00:00")}}
		in.After, in.Cycle = []Predecessor{{Name: "first"}}, []string{"web", "web"}
		in.Queried, in.Answer = true, &Answer{At: at("03:00:00"), Closed: "alerts"}
		in.Unserved, in.Unreadable, in.Polled, in.Live = true, "no rights", true, true
		in.RolledOut, in.PodStartups = new(true), []time.Duration{time.Second}
		in.PodAges = &PodAges{Oldest: at("01:00:00"), Live: true}
		in.Pods = &Pods{Active: []evict.Pod{{Name: "web-0"}}}
		in.Attempts = Attempts{Evicted: true, LookedAt: at("03:00:00")}
		in.Config = &Config{Hash: "c1-1", Missing: "ConfigMap settings does not exist"}
		in.Slots, in.SlotAge = Slots{Limit: 5, Share: 2, ShareUsed: true}, time.Minute
		in.FreezesShared, in.FreezeConfirmed, in.ClaimAhead = time.Second, time.Second, time.Minute
		in.Sent, in.Refused, in.LeadingSince, in.Brief = at("03:00:00"), "denied", at("02:59:00"), true
	})
	claimed := makeInputs(active, now("02:59:50"), func(in *Input) {
		before := in.Restart.Status
		in.BeforeClaim, in.ClaimAhead = &before, time.Minute
		in.Restart.Status.Active.StartedTime = *metaAt("03:00:00")
	})
	evicting := makeInputs(withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Method = tidekeeperv1.MethodEvict }), func(in *Input) {
		in.Live, in.Pods = true, &Pods{Active: []evict.Pod{{Name: "web-0", Created: at("01:00:00"), Ready: true}}}
	})
	old := makeInputs(now("02:00:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) {
		s.MaxPodAgeSeconds, s.OnConfigChange = 600, tidekeeperv1.ConfigMapsOnly
	}), func(in *Input) {
		in.PodAges, in.Config = &PodAges{Oldest: at("01:00:00"), Live: true}, &Config{Hash: "c1-2", Changed: at("01:30:00"), Live: true}
		in.Restart.Status.ConfigHash = "c1-1"
	})
	inputs := []Input{
		full, claimed, evicting, old, makeInputs(), makeInputs(noSlot), makeInputs(now("04:00:00")), makeInputs(now("02:00:00")),
		makeInputs(func(in *Input) { in.Target = nil }), makeInputs(requestAt("03:00:00"), withTarget(func(s *workload.State) { s.Paused = true })),
	}
	for field := range reflect.TypeFor[Input]().Fields() {
		set := false
		for i := range inputs {
			set = set || !reflect.ValueOf(inputs[i]).FieldByIndex(field.Index).IsZero()
		}
		if !set {
			t.Errorf("no input sets %s", field.Name)
		}
	}
	return inputs
}

// TestDeciderForgets checks that a [Decider] keeps no state of a decision that affects its next
// decision.
func TestDeciderForgets(t *testing.T) {
	inputs := fullInputs(t)
	prepared := func(d *decider, in *Input) *decider {
		d.prepare(in)
		d.gates.inOrder()
		// The following fields only reuse memory: they are written before they are read.
		d.other, d.brief, d.triggers.schedule.last, d.history.added = nil, nil, candidate{}, append([]tidekeeperv1.RestartRecord{}, d.history.added...)
		return d
	}
	for i := range inputs {
		for j := range inputs {
			used := &Decider{}
			used.Decide(&inputs[i])
			used.decider.eviction.next, used.decider.interval.newDelay = []evict.Pod{{Name: "web-0"}}, true // None of these decisions sets them.
			if !reflect.DeepEqual(prepared(&used.decider, &inputs[j]), prepared(&decider{}, &inputs[j])) {
				t.Errorf("after a decision about input %d, the decider has another state for input %d than a new one", i, j)
			}
			used.Decide(&inputs[i])
			if got, want := *used.Decide(&inputs[j]), Decide(inputs[j]); !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
				t.Errorf("input %d after input %d (-want +got):\n%s", j, i, cmp.Diff(want, got))
			}
		}
	}
}
