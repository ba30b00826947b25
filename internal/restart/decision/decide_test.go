// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// row is a test case for a decision. Each table of rows is in the test file of the code that it
// tests.
type row struct {
	name string
	in   Input

	ready   string    // status and reason of the condition Ready, separated by /
	next    time.Time // NextScheduleTime
	wake    time.Time
	send    time.Time
	active  bool
	slot    bool     // needs a slot
	live    bool     // the decision needs the target from the API server
	asks    bool     // the decision needs the startup times of the pods
	records []string // history entries in the format: outcome reason tick [+earlier]
}

// check makes the decision of each row, and makes a second decision with the resulting status.
func check(t *testing.T, rows []row) {
	t.Helper()
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.in.Restart.DeepCopy()
			d := Decide(tt.in)
			if diff := cmp.Diff(before, tt.in.Restart); diff != "" {
				t.Errorf("the input was changed (-before +after):\n%s", diff)
			}
			if tt.in.RolledOut == nil && d.Needs == NeedRolledOut {
				t.Fatal("it needs to know whether the tick was rolled out")
			}
			got := map[string]any{
				"ready": "", "next": time.Time{}, "wake": d.Wake, "send": d.Send, "active": d.Status.Active != nil,
				"needs slot": d.Needs == NeedSlot, "needs live target": d.Needs == NeedLiveTarget, "needs pods": d.Needs == NeedPodStartups,
			}
			if ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil {
				got["ready"] = string(ready.Status) + "/" + ready.Reason
			}
			if d.Status.NextScheduleTime != nil {
				got["next"] = d.Status.NextScheduleTime.Time
			}
			var records []string
			for _, r := range d.Records {
				line := string(r.Outcome) + " " + r.Reason + " " + r.ScheduledTime.UTC().Format(time.TimeOnly)
				if r.EarlierTicks > 0 {
					line += " +" + strconv.Itoa(int(r.EarlierTicks))
				}
				records = append(records, line)
			}
			got["records"] = records
			want := map[string]any{
				"ready": tt.ready, "next": tt.next, "wake": tt.wake, "send": tt.send, "active": tt.active,
				"needs slot": tt.slot, "needs live target": tt.live, "needs pods": tt.asks, "records": tt.records,
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}

			// A second decision with the resulting status must not change it.
			if tt.live || d.Wake.Equal(tt.in.Now) {
				return
			}
			again := tt.in
			again.Restart = tt.in.Restart.DeepCopy()
			again.Restart.Status = d.Status
			again.HasSlot = tt.in.HasSlot
			second := Decide(again)
			if d.Status.Active == nil || len(d.Records) > 0 && tt.send.IsZero() {
				if diff := cmp.Diff(d.Status, second.Status); diff != "" {
					t.Errorf("the second decision differs (-first +second):\n%s", diff)
				}
			}
		})
	}
}
