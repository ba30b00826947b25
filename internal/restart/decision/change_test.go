// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// changed removes the schedule, and makes the content differ from the content with which the pods
// were started. since is the time of the change.
func changed(since string) func(*Input) {
	return func(in *Input) {
		in.Restart.Spec.Schedule, in.Restart.Spec.OnConfigChange = "", tidekeeperv1.ConfigMapsOnly
		in.Restart.Status.NextScheduleTime, in.Restart.Status.ConfigHash = nil, "c1-old"
		in.Ticks = nil
		in.Config = &Config{Hash: "c1-new", Changed: at(since), Live: true}
		in.PodAges = &PodAges{Oldest: at("01:00:00"), Live: true}
	}
}

func withStatus(change func(*tidekeeperv1.ScheduledRestartStatus)) func(*Input) {
	return func(in *Input) { change(&in.Restart.Status) }
}

func TestChange(t *testing.T) {
	check(t, []row{
		{
			name: "the content changed", in: makeInputs(changed("02:59:00")),
			send: at("02:59:10"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "it changed just now", in: makeInputs(changed("02:59:55")),
			ready: "True/Scheduled", wake: at("03:00:05"),
		},
		{
			name: "it has not changed", in: makeInputs(changed("02:59:00"), func(in *Input) { in.Config.Hash = "c1-old" }),
			ready: "True/Scheduled",
		},
		{
			name: "at first sight", in: makeInputs(changed("02:59:00"), withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) { s.ConfigHash = "" })),
			ready: "True/Scheduled",
		},
		{
			name: "Secrets count from now on", in: makeInputs(changed("02:59:00"), func(in *Input) { in.Config.Hash = "s1-new" }),
			ready: "True/Scheduled",
		},
		{
			name: "nothing is known yet", in: makeInputs(changed("02:59:00"), func(in *Input) { in.Config = &Config{} }),
			ready: "True/Scheduled", wake: at("03:00:02"),
		},
		{
			name:  "nothing may be known",
			in:    makeInputs(changed("02:59:00"), func(in *Input) { in.Config = &Config{Problem: tidekeeperv1.ReasonConfigNotWatched} }),
			ready: "False/ConfigNotWatched",
		},
		{
			name: "pods of the very second count as older", in: makeInputs(changed("02:59:00"), oldest(at("02:59:00"))),
			send: at("02:59:10"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "another rollout has served it", in: makeInputs(changed("02:59:00"), oldest(at("02:59:01"))),
			ready: "True/Scheduled",
		},
		{
			name: "no pods", in: makeInputs(changed("02:59:00"), oldest(time.Time{})),
			ready: "True/Scheduled",
		},
		{
			name: "another rollout may be about to serve it", in: makeInputs(changed("02:59:00"), withTarget(func(t *workload.State) { t.Rollout.Updating = true })),
			ready: "True/TargetRolling",
		},
		{
			name: "for days, as it has no deadline", in: makeInputs(changed("02:59:00"), func(in *Input) { in.Now = in.Now.AddDate(0, 0, 3) }),
			send: at("02:59:10"), active: true, ready: "True/Restarting", wake: at("03:30:01").AddDate(0, 0, 3),
		},
		{
			name: "no slot", in: makeInputs(changed("02:59:00"), noSlot),
			ready: "True/BudgetExhausted", slot: true,
		},
		{
			name: "a paused target", in: makeInputs(changed("02:59:00"), withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "True/TargetPaused",
		},
		{
			name: "it is gone, and new pods would not start", in: makeInputs(changed("02:59:00"), func(in *Input) { in.Config.Missing = "ConfigMap web does not exist" }),
			ready: "True/TargetUnhealthy",
		},
		{
			name: "OnDelete replaces no pods", in: makeInputs(changed("02:59:00"), withTarget(func(t *workload.State) { t.OnDelete = true })),
			ready: "False/StrategyOnDelete",
		},
		{
			name: "suspended", in: makeInputs(changed("02:59:00"), withSpec(suspended)),
			ready: "True/Suspended",
		},
		{
			name: "no window is open", in: makeInputs(changed("02:59:00"), windowAt("0 5 * * *", time.Hour)),
			ready: "True/Scheduled", wake: at("05:00:00"),
		},
		{
			name: "spread", in: makeInputs(changed("02:59:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.SpreadSeconds = 600 })),
			ready: "True/Scheduled", wake: at("02:59:10").Add(spreadOfWeb(600)),
		},
		{
			name: "its tick is after the restart that the change did not reach",
			in:   makeInputs(changed("02:59:00"), withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("02:59:30")) })),
			send: at("02:59:31"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
	})
}

// spreadOfWeb returns the offset of these tests' ScheduledRestart for a spread of the given length.
func spreadOfWeb(length int32) time.Duration {
	in := makeInputs(withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.SpreadSeconds = length }))
	return place(in.Restart)
}

// TestChangeIsRecorded checks the status and the history entries after decisions about a change.
func TestChangeIsRecorded(t *testing.T) {
	waits := withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) { s.NextChangeTime = metaAt("02:59:10") })
	for _, tt := range []struct {
		name       string
		in         Input
		hash, next string
		active     string
		records    []string
	}{
		{name: "first sight", in: makeInputs(changed("02:59:00"), withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) { s.ConfigHash = "" })), hash: "c1-new"},
		{name: "it waits", in: makeInputs(changed("02:59:00"), noSlot), hash: "c1-old", next: "02:59:10"},
		{name: "it is started", in: makeInputs(changed("02:59:00"), waits), hash: "c1-old", active: "c1-new"},
		{name: "it settles", in: makeInputs(changed("02:59:59")), hash: "c1-old"},
		{
			name: "taken back before it was due", in: makeInputs(changed("02:59:00"), func(in *Input) { in.Config.Hash = "c1-old" }),
			hash: "c1-old",
		},
		{
			name: "taken back while it waited", in: makeInputs(changed("02:59:00"), waits, func(in *Input) { in.Config.Hash = "c1-old" }),
			hash: "c1-old", records: []string{"Change Skipped Withdrawn c1-old"},
		},
		{name: "another rollout before it was due", in: makeInputs(changed("02:59:00"), oldest(at("02:59:05"))), hash: "c1-new"},
		{
			name: "another rollout while it waited", in: makeInputs(changed("02:59:00"), waits, oldest(at("02:59:05"))),
			hash: "c1-new", records: []string{"Change Skipped AlreadyRestarted c1-new"},
		},
		{
			name: "it does not count any more", in: makeInputs(changed("02:59:00"), waits, withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.OnConfigChange = "" })),
		},
		{
			name: "another target", in: makeInputs(changed("02:59:00"), waits, withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) {
				s.ObservedTargetRef = &tidekeeperv1.TargetRef{Kind: "Deployment", Name: "other"}
			}), edited(func(*tidekeeperv1.ScheduledRestartSpec) {})),
			hash: "c1-new",
		},
		{
			name: "a tick of the schedule serves it", in: makeInputs(func(in *Input) {
				ticks, next := in.Ticks, in.Restart.Status.NextScheduleTime
				changed("02:59:00")(in)
				in.Ticks, in.Restart.Status.NextScheduleTime, in.Restart.Spec.Schedule = ticks, next, "0 3 * * *"
			}),
			hash: "c1-old", active: "c1-new",
		},
		{
			name: "a restart has ended", in: makeInputs(changed("02:59:00"), active, withTarget(sentTo), withTarget(complete), sentHere, noPods, withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) {
				s.Active.Trigger, s.Active.ConfigHash = tidekeeperv1.TriggerChange, "c1-new"
			})),
			hash: "c1-new", records: []string{"Change Succeeded  c1-new"},
		},
		{
			name: "it changed again meanwhile", in: makeInputs(changed("02:59:00"), active, withTarget(sentTo), withTarget(complete), sentHere, noPods, withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) {
				s.Active.Trigger, s.Active.ConfigHash = tidekeeperv1.TriggerChange, "c1-other"
			})),
			hash: "c1-other", next: "03:10:01", records: []string{"Change Succeeded  c1-other"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decide(tt.in)
			got := []string{d.Status.ConfigHash, "", ""}
			if d.Status.NextChangeTime != nil {
				got[1] = d.Status.NextChangeTime.UTC().Format(time.TimeOnly)
			}
			if d.Status.Active != nil {
				got[2] = d.Status.Active.ConfigHash
			}
			if diff := cmp.Diff([]string{tt.hash, tt.next, tt.active}, got); diff != "" {
				t.Errorf("hash, next and active (-want +got):\n%s", diff)
			}
			var records []string
			for _, r := range d.Records {
				records = append(records, string(r.Trigger)+" "+string(r.Outcome)+" "+r.Reason+" "+r.ConfigHash)
			}
			if diff := cmp.Diff(tt.records, records); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChangeIsLive checks that the content and the pods are read from the API server before a
// restart for a change starts.
func TestChangeIsLive(t *testing.T) {
	in := makeInputs(changed("02:59:00"), noSlot)
	in.Config.Live, in.PodAges = false, nil
	for _, step := range []struct {
		need   Need
		answer func()
	}{
		{NeedPodAges, func() { in.PodAges = &PodAges{Oldest: at("01:00:00")} }},
		{NeedLiveConfig, func() { in.Config.Live = true }},
		{NeedSlot, func() { in.HasSlot = true }},
		{NeedLivePodAges, func() { in.PodAges.Live = true }},
	} {
		if d := Decide(in); d.Needs != step.need || d.Status.Active != nil {
			t.Fatalf("it needs %v, want %v", d.Needs, step.need)
		}
		step.answer()
	}
	if d := Decide(in); !d.Send.Equal(at("02:59:10")) {
		t.Errorf("it sends %s", d.Send)
	}
}

// TestChangeIsHeldByWhatTheAPIServerMisses checks that a restart waits if the watch still shows an
// object that no longer exists on the API server.
func TestChangeIsHeldByWhatTheAPIServerMisses(t *testing.T) {
	in := makeInputs(changed("02:59:00"))
	in.Config.Live = false
	if d := Decide(in); d.Needs != NeedLiveConfig {
		t.Fatalf("it needs %v", d.Needs)
	}
	in.Config.Live, in.Config.Missing = true, "Secret web does not exist"
	if d := Decide(in); !d.Send.IsZero() || d.Status.Active != nil {
		t.Errorf("it sends %s", d.Send)
	}
}

// TestChangeIsSentAgain checks a restart that was started but whose tick was not sent. The tick
// must be sent if the content is still the same; otherwise the restart must be taken back without a
// history entry.
func TestChangeIsSentAgain(t *testing.T) {
	started := func(in *Input) {
		active(in)
		in.Restart.Status.Active.ScheduledTime, in.Restart.Status.Active.Trigger, in.Restart.Status.Active.ConfigHash = *metaAt("02:59:10"), tidekeeperv1.TriggerChange, "c1-new"
		in.Restart.Status.NextScheduleTime = nil
		unsent(in)
	}
	for _, tt := range []struct {
		name   string
		change func(*Input)
		send   bool
	}{
		{"nothing has changed", func(*Input) {}, true},
		{"the change was taken back", func(in *Input) { in.Config.Hash = "c1-old" }, false},
		{"it changed again", func(in *Input) { in.Config.Hash = "c1-newer" }, false},
		{"it changed, and back, just now", func(in *Input) { in.Config.Changed = at("02:59:55") }, false},
		{"another rollout", oldest(at("02:59:30")), false},
		{"the target is paused", withTarget(func(t *workload.State) { t.Paused = true }), false},
		{"it does not count any more", withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.OnConfigChange = "" }), false},
		{"suspended", withSpec(suspended), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decide(makeInputs(changed("02:59:00"), started, tt.change))
			if sent := !d.Send.IsZero(); sent != tt.send || len(d.Records) > 0 || (d.Status.Active != nil) != tt.send || d.Needs != NeedNothing {
				t.Errorf("needs %v, send %s, active %+v, records %+v", d.Needs, d.Send, d.Status.Active, d.Records)
			}
		})
	}
}

// TestChangeOfWhatComesFirst checks that a ScheduledRestart waits for its predecessor's pending
// change, even if the predecessor's status does not show the change yet.
func TestChangeOfWhatComesFirst(t *testing.T) {
	in := makeInputs(changed("02:59:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.After = []string{"first"} }))
	first := makeInputs(changed("02:59:00")).Restart
	in.After = []Predecessor{{Name: "first", Restart: first, Changed: ChangePending(first, "c1-new")}}
	if d := Decide(in); !d.Send.IsZero() || d.Status.Conditions[0].Reason != tidekeeperv1.ReasonOutOfOrder {
		t.Errorf("it is sent at %s: %+v", d.Send, d.Status.Conditions)
	}
	in.After[0].Changed = ChangePending(first, first.Status.ConfigHash)
	if d := Decide(in); d.Send.IsZero() {
		t.Errorf("it waits: %+v", d.Status.Conditions)
	}
	suspended(&first.Spec)
	if ChangePending(first, "c1-new") {
		t.Error("a suspended one has a change to restart for")
	}
}
