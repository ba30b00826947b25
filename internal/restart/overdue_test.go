// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// TestOverdue checks that a schedule is overdue if neither of two consecutive ticks has restarted
// the target by the time at which the second restart should be complete.
func TestOverdue(t *testing.T) {
	day := func(n int) metav1.Time { return metav1.Time{Time: time.Date(2026, 3, n, 3, 0, 0, 0, time.UTC)} }
	at := func(n int) *metav1.Time { d := day(n); return &d }
	record := func(n int, outcome tidekeeperv1.Outcome, reason string) tidekeeperv1.RestartRecord {
		return tidekeeperv1.RestartRecord{ScheduledTime: day(n), Trigger: tidekeeperv1.TriggerSchedule, Outcome: outcome, Reason: reason}
	}
	succeeded := func(n int) tidekeeperv1.RestartRecord { return record(n, tidekeeperv1.OutcomeSucceeded, "") }
	missed := func(n int) tidekeeperv1.RestartRecord {
		return record(n, tidekeeperv1.OutcomeMissed, tidekeeperv1.ReasonTargetUnhealthy)
	}
	byHand := missed(9)
	byHand.Trigger = tidekeeperv1.TriggerRequest
	type history = []tidekeeperv1.RestartRecord

	for _, tt := range []struct {
		name    string
		status  tidekeeperv1.ScheduledRestartStatus
		suspend bool
		limit   int32
		// want is the day of the month of the tick with which the schedule becomes overdue; 0 if it
		// never becomes overdue.
		want int
	}{
		{name: "new", status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(5)}, want: 6},
		{name: "not reconciled any more", status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(5), History: history{succeeded(4)}, LastSuccessfulTime: at(4)}, want: 6},
		{name: "in progress", status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(6), Active: &tidekeeperv1.ActiveRestart{ScheduledTime: day(5), Trigger: tidekeeperv1.TriggerSchedule}}, want: 6},
		{name: "missed twice", status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(6), History: history{missed(5), missed(4), succeeded(3)}, LastSuccessfulTime: at(3)}, want: 5},
		{name: "stopped by failures", status: tidekeeperv1.ScheduledRestartStatus{History: history{record(5, tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTimeout), succeeded(4)}, LastSuccessfulTime: at(4)}, want: 6},
		{name: "a request was missed", status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(10), History: history{byHand, succeeded(9)}, LastSuccessfulTime: at(9)}, want: 11},
		{name: "restarted by another client", status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(6), History: history{record(5, tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonAlreadyRestarted), missed(4)}}, want: 7},
		{name: "edited", status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(6), History: history{record(5, tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited), succeeded(4)}, LastSuccessfulTime: at(4)}, want: 7},
		{name: "resumed", status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(20), History: history{succeeded(3)}, LastSuccessfulTime: at(3)}, want: 21},
		{name: "a short history", limit: 1, status: tidekeeperv1.ScheduledRestartStatus{NextScheduleTime: at(10), History: history{missed(9)}, LastSuccessfulTime: at(3)}, want: 5},
		{name: "suspended", suspend: true, status: tidekeeperv1.ScheduledRestartStatus{History: history{missed(5), missed(4)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ticks, err := schedule.Parse("0 3 * * *", "")
			if err != nil {
				t.Fatal(err)
			}
			restart := &tidekeeperv1.ScheduledRestart{Spec: tidekeeperv1.ScheduledRestartSpec{
				Suspend: tt.suspend, StartingDeadlineSeconds: 900, ProgressDeadlineSeconds: 1800, HistoryLimit: cmp.Or(tt.limit, 10),
			}}
			o, key := &overdue{memories: newMemories()}, types.NamespacedName{Namespace: "shop", Name: "web"}
			o.observe(key, restart, &tt.status, &decision.Input{Restart: restart, Ticks: ticks, Offset: 40 * time.Minute})
			if tt.want == 0 {
				if len(o.memories.all) != 0 {
					t.Errorf("it is counted: %v", o.memories.all)
				}
				return
			}
			from := day(tt.want).Add(40*time.Minute + 45*time.Minute)
			if got := o.memories.all[key].overdue.at; !got.Equal(from) {
				t.Errorf("overdue from %s, want from %s", got, from)
			}
			o.memories.forget(key)
			if len(o.memories.all) != 0 {
				t.Error("a deleted one is kept")
			}
		})
	}
}

// TestOverdueRows checks that the metric has a series for each of twenty namespaces, and one series
// for the sum of the other namespaces.
func TestOverdueRows(t *testing.T) {
	o := &overdue{memories: newMemories()}
	now := time.Unix(1_000_000, 0)
	o.clock = clocktesting.NewFakePassiveClock(now)
	for n := range 25 {
		for i := range n + 1 {
			o.memories.all[types.NamespacedName{Namespace: fmt.Sprintf("ns-%02d", n), Name: fmt.Sprint(i)}] = &memory{overdue: due{at: now.Add(-time.Second)}}
		}
	}
	o.memories.all[types.NamespacedName{Namespace: "well", Name: "web"}] = &memory{overdue: due{at: now.Add(time.Second)}}
	o.memories.all[types.NamespacedName{Namespace: "never", Name: "web"}] = &memory{overdue: due{}}
	want := map[string]float64{"": 15} // the sum of the five smallest counts: 1 + 2 + 3 + 4 + 5
	for n := 5; n < 25; n++ {
		want[fmt.Sprintf("ns-%02d", n)] = float64(n + 1)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(o)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		got[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
