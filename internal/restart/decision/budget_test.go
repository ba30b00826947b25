// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestBudgetIsExplained checks that the message of a restart without a slot names the exhausted
// limit (of the cluster or the namespace), its number of slots, and when a slot becomes free. The
// history entry of a tick that is missed for this reason must name the limit.
func TestBudgetIsExplained(t *testing.T) {
	slots := func(limit, share int, used bool) func(*Input) {
		return func(in *Input) { in.Slots = Slots{Limit: limit, Share: share, ShareUsed: used} }
	}
	age := func(age time.Duration) func(*Input) { return func(in *Input) { in.SlotAge = age } }
	for name, c := range map[string]struct {
		in           Input
		says, missed string
	}{
		"the share": {
			makeInputs(slots(20, 10, true), age(10*time.Minute)),
			"this namespace's share of the restart budget is used up: 10 of 20 slots; a slot is free again when one of these restarts ends, or has taken 10m0s",
			"this namespace's share of the restart budget was used up: 10 of 20 slots",
		},
		"all slots": {
			makeInputs(slots(20, 10, false), age(10*time.Minute)),
			"the restart budget is used up: 20 of 20 slots; a slot is free again when one of these restarts ends, or has taken 10m0s",
			"the restart budget was used up: 20 of 20 slots",
		},
		"slots that are kept until the end": {
			makeInputs(slots(2, 1, true), age(0)),
			"this namespace's share of the restart budget is used up: 1 of 2 slots; a slot is free again when one of these restarts ends",
			"this namespace's share of the restart budget was used up: 1 of 2 slots",
		},
	} {
		t.Run(name, func(t *testing.T) {
			noSlot(&c.in)
			waits := Decide(c.in)
			ready := meta.FindStatusCondition(waits.Status.Conditions, tidekeeperv1.ConditionReady)
			if want := "a restart is due and waits until 2026-06-10T03:15:00Z: " + c.says; ready.Message != want {
				t.Errorf("it says\n%q, want\n%q", ready.Message, want)
			}
			now("03:20:00")(&c.in)
			c.in.Restart = c.in.Restart.DeepCopy()
			c.in.Restart.Status = waits.Status
			records := Decide(c.in).Records
			if want := "not started before the deadline: " + c.missed; len(records) != 1 || records[0].Message != want {
				t.Errorf("the tick is recorded as\n%+v, want\n%q", records, want)
			}
		})
	}
}
