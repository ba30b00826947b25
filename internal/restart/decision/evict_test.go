// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

func byEviction(in *Input) { in.Restart.Spec.Method, in.Live = tidekeeperv1.MethodEvict, true }

// havingPods sets the pods by name. A pod is old and ready by default. The suffix + stands for a
// new pod, and the suffix - for a pod that is not ready.
func havingPods(names ...string) func(*Input) {
	return func(in *Input) {
		in.Pods = &Pods{Startups: map[string]time.Duration{}}
		for i, name := range names {
			pod := evict.Pod{Name: strings.Trim(name, "+-"), UID: types.UID(name), Created: at("01:00:00").Add(time.Duration(i) * time.Minute), Ready: !strings.Contains(name, "-")}
			if strings.Contains(name, "+") {
				pod.Created = at("03:00:05")
				in.Pods.Startups[pod.Name] = 4 * time.Second
			}
			in.Pods.Active = append(in.Pods.Active, pod)
		}
	}
}

// evicting sets a restart by eviction in progress, for the 03:00 tick, that started at 03:00:01.
func evicting(in *Input) {
	byEviction(in)
	active(in)
	in.Restart.Status.Active.Eviction = &tidekeeperv1.ActiveEviction{CreatedBefore: *metaAt("03:00:00")}
}

// refused makes the API server have rejected evictions since 03:00:02, most recently at the given
// time.
func refused(clock string) func(*Input) {
	return func(in *Input) {
		in.Attempts = Attempts{LookedAt: at(clock), Refusal: "pod a cannot be evicted: the budget b", RefusedAt: at(clock), RefusedSince: at("03:00:02")}
	}
}

func TestStartEviction(t *testing.T) {
	check(t, []row{
		{
			name: "is claimed when it is due", in: makeInputs(byEviction, havingPods("a", "b", "c")),
			ready: "True/Restarting", next: tomorrow, wake: at("03:00:01"), active: true,
		},
		{
			name: "is not claimed ahead", in: makeInputs(byEviction, now("02:59:50"), func(in *Input) { in.ClaimAhead = time.Minute }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
		{
			name: "needs a slot", in: makeInputs(byEviction, noSlot), ready: "True/BudgetExhausted", next: at("03:00:00"), wake: at("03:15:01"), slot: true,
		},
		{
			name: "all pods are younger", in: makeInputs(byEviction, havingPods("a+", "b+", "c+")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Skipped AlreadyRestarted 03:00:00"},
		},
		{
			name: "a template that was restarted since says nothing", in: makeInputs(byEviction, havingPods("a"), withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("03:00:00")) })),
			ready: "True/Restarting", next: tomorrow, wake: at("03:00:01"), active: true,
		},
		{
			name: "no pods", in: makeInputs(byEviction, havingPods(), withTarget(func(t *workload.State) { t.Pods = 0 })),
			ready: "True/Restarting", next: tomorrow, wake: at("03:00:01"), active: true,
		},
		{
			name: "OnDelete, of an older template", in: makeInputs(byEviction, havingPods("a"), withTarget(func(t *workload.State) {
				t.OnDelete, t.Rollout, t.Availability = true, workload.Progress{Updating: true}, workload.Progress{Available: true}
			})),
			ready: "True/Restarting", next: tomorrow, wake: at("03:00:01"), active: true,
		},
		{
			name: "OnDelete, not available", in: makeInputs(byEviction, withTarget(func(t *workload.State) { t.OnDelete, t.Availability = true, workload.Progress{} })),
			ready: "True/TargetUnhealthy", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "below a partition", in: makeInputs(byEviction, havingPods("a"), withTarget(func(t *workload.State) { t.Partitioned = true })),
			ready: "True/Restarting", next: tomorrow, wake: at("03:00:01"), active: true,
		},
		{
			name: "another rollout comes first", in: makeInputs(byEviction, withTarget(func(t *workload.State) { t.Rollout.Updating = true })),
			ready: "True/TargetRolling", next: at("03:00:00"), wake: at("03:15:01"),
		},
	})
}

// TestEvictionNeeds checks that the freezes and the pods are read from the API server only right
// before an eviction starts.
func TestEvictionNeeds(t *testing.T) {
	in := makeInputs(byEviction)
	in.FreezesLive = false
	d := Decide(in)
	if d.Needs != NeedLiveFreezes || !d.Due.Equal(at("03:00:00")) {
		t.Fatalf("it needs %v, due %s", d.Needs, d.Due)
	}
	frozen := in
	frozen.FreezesLive = true
	frozen.Freezes = []period.Period{{Name: "f", From: at("02:00:00"), Until: at("04:00:00")}}
	if d := Decide(frozen); d.Status.Active != nil || meta.FindStatusCondition(d.Status.Conditions, "Ready").Reason != tidekeeperv1.ReasonFrozen {
		t.Errorf("in a freeze: %+v", d.Status)
	}
	in.FreezesLive = true
	if d = Decide(in); d.Needs != NeedPods || d.Status.Active != nil {
		t.Fatalf("it needs %v, with %+v", d.Needs, d.Status.Active)
	}
	havingPods("a", "b+")(&in)
	d = Decide(in)
	want := &tidekeeperv1.ActiveEviction{CreatedBefore: *metaAt("01:00:01")}
	if diff := cmp.Diff(want, d.Status.Active.Eviction, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("eviction (-want +got):\n%s", diff)
	}
	if !d.Started.Equal(at("03:00:00")) || !d.Send.IsZero() || len(d.Evict) > 0 {
		t.Errorf("the output is %+v", d)
	}
}

func TestFollowEviction(t *testing.T) {
	percent := func(in *Input) { in.Restart.Spec.MaxUnavailable = new(intstr.Parse("67%")) }
	for _, tt := range []struct {
		name string
		in   Input

		evict   string
		needs   bool
		wake    time.Time
		outcome string
		refused string
	}{
		{name: "looks at the pods", in: makeInputs(evicting, now("03:00:02")), needs: true},
		{name: "not again at once", in: makeInputs(evicting, now("03:00:02"), func(in *Input) { in.Attempts.LookedAt = at("03:00:01").Add(500 * time.Millisecond) }), wake: at("03:00:02").Add(500 * time.Millisecond)},
		{name: "a clock was set back", in: makeInputs(evicting, now("03:00:02"), func(in *Input) { in.Attempts.LookedAt = at("03:10:00") }), needs: true},
		{name: "the oldest goes first", in: makeInputs(evicting, now("03:00:02"), havingPods("a", "b", "c")), evict: "a", wake: at("03:00:07")},
		{name: "as many as may be unavailable", in: makeInputs(evicting, percent, now("03:00:02"), havingPods("a", "b", "c")), evict: "a b", wake: at("03:00:07")},
		{name: "a StatefulSet by its ordinals", in: makeInputs(evicting, now("03:00:02"), havingPods("a-0", "a-1", "a-2"), withTarget(func(t *workload.State) { t.Kind = "StatefulSet" })), evict: "a-2", wake: at("03:00:07")},
		{name: "waits for the successor", in: makeInputs(evicting, now("03:00:06"), havingPods("b", "c", "d+-")), wake: at("03:00:11")},
		{name: "is complete", in: makeInputs(evicting, now("03:00:06"), havingPods("d+", "e+", "f+")), outcome: "Succeeded"},
		{name: "is complete after its deadline", in: makeInputs(evicting, now("03:30:06"), havingPods("d+", "e+", "f+")), outcome: "Succeeded"},
		{name: "looks before it fails", in: makeInputs(evicting, now("03:30:06"), refused("03:30:06")), needs: true, refused: "pod a cannot be evicted: the budget b"},
		{name: "takes too long", in: makeInputs(evicting, now("03:30:06"), havingPods("b", "c", "d+-")), outcome: "Failed Timeout not complete after 1800 s: 2 pods are older than the tick, and 1 of 3 are not ready"},
		{
			name: "the budget never allows it", in: makeInputs(evicting, now("03:30:06"), havingPods("a", "b", "c"), refused("03:30:06")),
			outcome: "Failed EvictionRefused not complete after 1800 s: 3 pods are older than the tick; pod a cannot be evicted: the budget b",
		},
		{name: "is refused, and tried again soon", in: makeInputs(evicting, now("03:00:03"), havingPods("a", "b", "c"), refused("03:00:02")), wake: at("03:00:07"), refused: "pod a cannot be evicted: the budget b"},
		{name: "and then", in: makeInputs(evicting, now("03:00:07"), havingPods("a", "b", "c"), refused("03:00:02")), evict: "a", wake: at("03:00:12"), refused: "pod a cannot be evicted: the budget b"},
		{name: "and later, after a while", in: makeInputs(evicting, now("03:02:03"), havingPods("a", "b", "c"), refused("03:02:02")), wake: at("03:02:32"), refused: "pod a cannot be evicted: the budget b"},
		{name: "and at least once a minute", in: makeInputs(evicting, now("03:20:03"), havingPods("a", "b", "c"), refused("03:20:02")), wake: at("03:21:02"), refused: "pod a cannot be evicted: the budget b"},
		{name: "what another process has noted stays", in: makeInputs(evicting, wasRefused, now("03:00:02"), havingPods("a", "b", "c")), evict: "a", wake: at("03:00:07"), refused: "the budget b"},
		{name: "until an eviction is accepted", in: makeInputs(evicting, wasRefused, now("03:00:03"), havingPods("b", "c"), func(in *Input) { in.Attempts = Attempts{LookedAt: at("03:00:01"), Evicted: true} }), wake: at("03:00:08")},
		{name: "leaves a rollout to itself", in: makeInputs(evicting, now("03:00:03"), withTarget(sentTo)), wake: at("03:30:01")},
		{name: "that takes too long", in: makeInputs(evicting, now("03:30:03"), withTarget(sentTo)), outcome: "Failed Timeout not complete after 1800 s: Deployment web is being rolled out: 1 of 3 pods are updated"},
		{name: "but not if pods are left as they are", in: makeInputs(evicting, now("03:00:03"), withTarget(sentTo), withTarget(func(t *workload.State) { t.OnDelete = true })), needs: true},
		{name: "goes on in a freeze", in: makeInputs(evicting, now("03:00:02"), havingPods("a", "b", "c"), func(in *Input) {
			in.Freezes = []period.Period{{Name: "f", From: at("03:00:02"), Until: at("04:00:00")}}
		}), evict: "a", wake: at("03:00:07")},
		{name: "goes on while suspended", in: makeInputs(evicting, now("03:00:02"), havingPods("a", "b", "c"), edited(suspended)), evict: "a", wake: at("03:00:07")},
		{name: "goes on by its method", in: makeInputs(evicting, now("03:00:02"), havingPods("a", "b", "c"), edited(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Method = "" })), evict: "a", wake: at("03:00:07")},
		{name: "the workload was scaled to none", in: makeInputs(evicting, now("03:00:06"), havingPods(), withTarget(func(t *workload.State) { t.Pods = 0 })), outcome: "Succeeded"},
		{name: "the workload is being deleted", in: makeInputs(evicting, now("03:00:06"), withTarget(func(t *workload.State) { t.Deleting = true })), outcome: "Failed TargetNotFound the workload was deleted during the restart"},
		{name: "the workload was replaced", in: makeInputs(evicting, sentHere, now("03:00:06"), withTarget(func(t *workload.State) { t.UID = "u" })), outcome: "Failed TargetNotFound the workload was deleted during the restart"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decide(tt.in)
			var names []string
			for _, pod := range d.Evict {
				names = append(names, pod.Name)
			}
			outcome, refusal := "", ""
			if len(d.Records) > 0 {
				r := d.Records[len(d.Records)-1]
				outcome = strings.TrimSpace(string(r.Outcome) + " " + r.Reason + " " + r.Message)
			}
			if active := d.Status.Active; active != nil {
				refusal = active.Eviction.Refused
			}
			wake := d.Wake
			if tt.needs || tt.outcome != "" {
				wake = time.Time{}
			}
			want := []any{tt.evict, tt.needs, tt.wake, tt.outcome, tt.refused}
			if diff := cmp.Diff(want, []any{strings.Join(names, " "), d.Needs == NeedPods, wake, outcome, refusal}, cmpopts.EquateApproxTime(0)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if !d.Send.IsZero() {
				t.Error("a tick is sent to the workload")
			}
			ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady)
			if tt.refused != "" && !strings.Contains(ready.Message, tt.refused) {
				t.Errorf("the condition says %q", ready.Message)
			}
		})
	}
}

// TestNoFailureByTheCache checks for random inputs that no restart fails because of a target from
// the cache: the API server must be asked first, as the restart may be complete by now. A deletion,
// which cannot be undone, is the only exception.
func TestNoFailureByTheCache(t *testing.T) {
	asked := 0
	for seed := range uint64(6_000) {
		in := drawStrange(rand.New(rand.NewPCG(seed, 0)))
		if in.Restart.Status.Active == nil || in.Target != nil && in.Target.Deleting {
			continue
		}
		in.Live = false
		d := Decide(in)
		if d.Needs == NeedLiveTarget {
			asked++
		}
		for _, r := range d.Records {
			if r.Outcome == tidekeeperv1.OutcomeFailed {
				t.Errorf("seed %d: %s %.80s", seed, r.Reason, r.Message)
			}
		}
	}
	if asked < 500 {
		t.Errorf("the API server was asked for the target only %d times", asked)
	}
	late := makeInputs(evicting, now("03:30:03"), withTarget(sentTo), func(in *Input) { in.Live = false })
	if d := Decide(late); d.Needs != NeedLiveTarget || len(d.Records) > 0 {
		t.Errorf("an eviction during a rollout: it needs %d, and records %+v", d.Needs, d.Records)
	}
}

func wasRefused(in *Input) { in.Restart.Status.Active.Eviction.Refused = "the budget b" }

// TestEvictionStartups checks that the history entry of a successful restart summarizes the startup
// times of the new pods.
func TestEvictionStartups(t *testing.T) {
	in := makeInputs(evicting, now("03:00:06"), havingPods("d+", "e+", "f+"))
	in.Pods.Startups["f"] = 9 * time.Second
	d := Decide(in)
	want := &tidekeeperv1.PodStartup{Pods: 3, MedianSeconds: 4, MaxSeconds: 9}
	if diff := cmp.Diff(want, d.Status.History[0].PodStartup); diff != "" {
		t.Errorf("startup (-want +got):\n%s", diff)
	}
}

// TestEvictionForAge checks that restarts by eviction also enforce the maximum age of pods, with
// any update strategy.
func TestEvictionForAge(t *testing.T) {
	in := makeInputs(byEviction, func(in *Input) {
		in.Ticks, in.Restart.Spec.Schedule, in.Restart.Spec.MaxPodAgeSeconds = nil, "", 3600
		in.Restart.Status.NextScheduleTime = nil
		in.Target.OnDelete, in.Target.Availability = true, workload.Progress{Available: true}
		in.Target.RestartedAt = formatTime(at("02:59:00"))
		in.PodAges = &PodAges{Oldest: at("01:59:00"), Live: true}
	}, havingPods("a", "b+", "c+"))
	d := Decide(in)
	if active := d.Status.Active; active == nil || active.Trigger != tidekeeperv1.TriggerAge || !active.ScheduledTime.Time.Equal(at("02:59:00")) {
		t.Fatalf("the status is %+v", d.Status)
	}
}

// TestMethodIsEditedBeforeItIsSent checks that a tick that was claimed for a rollout is not sent
// after the restart method was changed to Evict.
func TestMethodIsEditedBeforeItIsSent(t *testing.T) {
	d := Decide(makeInputs(active, unsent, now("03:00:02"), edited(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Method = tidekeeperv1.MethodEvict })))
	if r := d.Records; len(r) != 1 || r[0].Reason != tidekeeperv1.ReasonEdited || !d.Send.IsZero() {
		t.Errorf("the output is %+v", d)
	}
}

// TestPoll checks that a target whose changes cause no events is read often while a tick waits for
// it, and rarely otherwise, so that thousands of suspended ScheduledRestarts with missing targets
// cost little.
func TestPoll(t *testing.T) {
	polled := func(in *Input) { in.Polled = true }
	missing := func(in *Input) { in.Target, in.Unserved = nil, true }
	for _, c := range []struct {
		name string
		in   Input
		want time.Duration
	}{
		{"a tick waits for a target that is not served", makeInputs(byEviction, polled, missing), pollInterval},
		{"none, as it is suspended", makeInputs(byEviction, polled, missing, withSpec(suspended)), idleInterval},
		{"none, as it is not due", makeInputs(byEviction, polled, missing, now("02:00:00")), idleInterval},
		{"and there is a target", makeInputs(byEviction, polled, now("02:00:00")), time.Hour},
	} {
		d := Decide(c.in)
		if got := d.Wake.Sub(c.in.Now); got != c.want {
			t.Errorf("%s: looked at again in %s, want %s", c.name, got, c.want)
		}
	}
}
