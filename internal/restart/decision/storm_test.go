// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// changedBefore sets the start time of the last restart for a change.
func changedBefore(clock string) func(*Input) {
	return withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) { s.LastChangeTime = metaAt(clock) })
}

// TestMinInterval checks that the minimum interval delays only restarts for changes, and that only
// these restarts begin an interval.
func TestMinInterval(t *testing.T) {
	check(t, []row{
		{
			name: "it is not over", in: makeInputs(changed("02:59:00"), changedBefore("02:55:00")),
			ready: "True/Scheduled", wake: at("03:05:00"),
		},
		{
			name: "it is over", in: makeInputs(changed("02:59:00"), changedBefore("02:50:01")),
			send: at("02:59:10"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "a shorter one", in: makeInputs(changed("02:59:00"), changedBefore("02:59:01"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.MinIntervalSeconds = 60 })),
			send: at("02:59:10"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "the clock was set back since", in: makeInputs(changed("02:59:00"), changedBefore("13:00:00")),
			send: at("02:59:10"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "the spread is in it", in: makeInputs(changed("02:59:00"), changedBefore("02:55:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.SpreadSeconds = 60 })),
			ready: "True/Scheduled", wake: at("03:05:00"),
		},
		{
			name: "a later change does not delay what waits for its place in the spread",
			in: makeInputs(changed("02:59:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.SpreadSeconds = 3600 }),
				withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) { s.NextChangeTime = metaAt("03:00:00") })),
			send: at("02:59:10"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "changes without a pause", in: makeInputs(changed("02:59:59"), func(in *Input) { in.Config.Restless = at("02:50:01") }),
			send: at("03:00:01"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "changes without a pause, for less than the interval", in: makeInputs(changed("02:59:59"), func(in *Input) { in.Config.Restless = at("02:50:05") }),
			ready: "True/Scheduled", wake: at("03:00:05"),
		},
		{
			name: "a tick of the schedule does not wait", in: makeInputs(func(in *Input) {
				ticks, next := in.Ticks, in.Restart.Status.NextScheduleTime
				changed("02:59:00")(in)
				in.Ticks, in.Restart.Status.NextScheduleTime, in.Restart.Spec.Schedule = ticks, next, "0 3 * * *"
			}, changedBefore("02:55:00")),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:05:00"),
		},
		{
			name: "a request does not wait", in: makeInputs(changed("02:59:00"), changedBefore("02:55:00"), requestAt("03:00:00")),
			send: at("03:00:00"), active: true, ready: "True/Restarting", wake: at("03:05:00"),
		},
	})
	for name, change := range map[string]func(*Input){
		"a tick of the schedule": func(*Input) {},
		"the age of pods":        withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) { s.Active.Trigger = tidekeeperv1.TriggerAge }),
		"a change":               withStatus(func(s *tidekeeperv1.ScheduledRestartStatus) { s.Active.Trigger = tidekeeperv1.TriggerChange }),
	} {
		d := Decide(makeInputs(changed("02:59:00"), active, withTarget(sentTo), withTarget(complete), sentHere, noPods, change))
		if begins := d.Status.LastChangeTime != nil; begins != (name == "a change") {
			t.Errorf("%s: the interval begins: %t", name, begins)
		}
	}
}

// hour holds the results of simulating an hour in which the content changes regularly and all
// decisions are carried out immediately.
type hour struct {
	in       Input
	restarts int
	// writes counts the changes of the status. messages is the set of messages of the condition
	// RestartStorm.
	writes   int
	messages map[string]bool
	stormAt  time.Time
}

func playHour(t *testing.T, every, length time.Duration, content func(n int) string) *hour {
	t.Helper()
	h := &hour{messages: map[string]bool{}}
	h.in = makeInputs(changed("00:00:00"), now("01:00:00"))
	h.in.Config.Hash, h.in.Restart.Status.ConfigHash = "c1-0", "c1-0"
	pods := at("00:30:00")
	source := Source{Kind: podconfig.Secret, Name: "tls", Writers: []string{"issuer"}}
	begin := h.in.Now
	for n, next := 1, h.in.Now; h.in.Now.Before(begin.Add(length)); {
		if !h.in.Now.Before(next) {
			was := h.in.Config
			h.in.Config = &Config{Hash: "c1-" + content(n), Changed: h.in.Now, Restless: h.in.Now, Source: source, Live: true}
			source.Writers = []string{fmt.Sprintf("issuer-%d", n%2)}
			if was.Restless != (time.Time{}) && h.in.Now.Sub(was.Changed) <= DefaultChangeSettle {
				h.in.Config.Restless = was.Restless
			}
			n, next = n+1, next.Add(every)
		}
		h.in.PodAges, h.in.Live, h.in.PodStartups = &PodAges{Oldest: pods, Live: true}, true, []time.Duration{}
		d := Decide(h.in)
		if d.Needs != NeedNothing {
			t.Fatalf("it needs %v", d.Needs)
		}
		if !equality.Semantic.DeepEqual(d.Status, h.in.Restart.Status) {
			h.writes++
		}
		h.in.Restart.Status = d.Status
		if storm := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionRestartStorm); storm != nil {
			h.messages[storm.Message] = true
			if h.stormAt.IsZero() {
				h.stormAt = h.in.Now
			}
		}
		if !d.Send.IsZero() {
			h.restarts++
			target := *h.in.Target
			target.RestartedAt, target.LastTick = formatTime(d.Send), formatTime(d.Send)
			target.Rollout = workload.Progress{Available: true}
			h.in.Target, h.in.Sent, pods = &target, d.Send, h.in.Now
			continue
		}
		if h.in.Now = next; d.Wake.After(begin) && d.Wake.Before(next) {
			h.in.Now = d.Wake
		}
	}
	return h
}

// TestRestartStorm checks that constantly changing content restarts the workload once per interval,
// with a bounded number of status writes. The condition must name the changing object and its
// writers until the content has been unchanged for an interval.
func TestRestartStorm(t *testing.T) {
	fresh := func(n int) string { return fmt.Sprint(n) }
	for _, tt := range []struct {
		name    string
		every   time.Duration
		content func(int) string
		// least and most are the bounds of the number of restarts in an hour. writes is the maximum
		// number of status writes.
		least, most, writes int
	}{
		{"each minute", time.Minute, fresh, 6, 6, 6 * 4},
		{"each second", time.Second, fresh, 5, 6, 6 * 4},
		{"ten times a second", 100 * time.Millisecond, fresh, 5, 6, 6 * 4},
		{"back and forth each minute", time.Minute, func(n int) string { return fmt.Sprint(n % 2) }, 4, 6, 2*60 + 6*4},
		{"back and forth each second", time.Second, func(n int) string { return fmt.Sprint(n % 2) }, 4, 6, 6 * 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := playHour(t, tt.every, time.Hour, tt.content)
			if h.restarts < tt.least || h.restarts > tt.most || h.writes > tt.writes {
				t.Errorf("%d restarts and %d writes, want %d to %d, and at most %d", h.restarts, h.writes, tt.least, tt.most, tt.writes)
			}
			if h.stormAt.IsZero() {
				t.Fatalf("it is not called a storm: %+v", h.in.Restart.Status)
			}
			for message := range h.messages {
				if !strings.Contains(message, "Secret tls changed last, and is written by issuer") || len(h.messages) > h.restarts {
					t.Errorf("it says %q, in %d variants", message, len(h.messages))
				}
			}

			// The storm ends once the pods have the content and it has been unchanged for ten
			// minutes.
			h.in.Restart.Status.ConfigHash, h.in.Restart.Status.NextChangeTime, h.in.Restart.Status.Active = h.in.Config.Hash, nil, nil
			h.in.Now = h.in.Config.Changed.Add(10*time.Minute - time.Second)
			if d := Decide(h.in); meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionRestartStorm) == nil || !d.Wake.Equal(h.in.Config.Changed.Add(10*time.Minute)) {
				t.Errorf("before it is quiet for an interval: wake %s, %+v", d.Wake, d.Status)
			}
			h.in.Now = h.in.Now.Add(time.Second)
			if d := Decide(h.in); meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionRestartStorm) != nil || d.Status.ConsecutiveDelays != 0 {
				t.Errorf("it does not end: %+v", d.Status)
			}
		})
	}
	for name, every := range map[string]time.Duration{"each 25 minutes": 25 * time.Minute, "each 10 minutes and a bit": 10*time.Minute + 15*time.Second} {
		if h := playHour(t, every, 4*time.Hour, fresh); !h.stormAt.IsZero() || h.restarts < int(4*time.Hour/every) {
			t.Errorf("%s: %d restarts, and a storm at %s", name, h.restarts, h.stormAt)
		}
	}
}

// TestSource checks the descriptions of sources with several writers, with unknown writers, and
// without an object.
func TestSource(t *testing.T) {
	got := []string{
		Source{}.String(), Source{Kind: podconfig.ConfigMap, Name: "web"}.String(),
		Source{Kind: podconfig.Secret, Name: "tls", Writers: []string{"a", "b"}}.String(),
	}
	want := []string{
		"it is not known which object changed last", "ConfigMap web changed last; it does not say who writes it",
		"Secret tls changed last, and is written by a and b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOrphaned checks decisions about a ScheduledRestart that an opt-in left behind when its
// workload was deleted.
func TestOrphaned(t *testing.T) {
	made := func(owner ...metav1.OwnerReference) func(*Input) {
		return func(in *Input) {
			in.Restart.Annotations = map[string]string{tidekeeperv1.AppliedAnnotation: "{}"}
			in.Restart.OwnerReferences = owner
		}
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "t", Controller: new(true)}
	other := owner
	other.UID = "other"
	check(t, []row{
		{
			name: "its workload", in: makeInputs(made(owner)), send: at("03:00:00"), active: true, next: tomorrow, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "left without an owner", in: makeInputs(made()), ready: "False/Orphaned", records: []string{"Skipped Orphaned 03:00:00"},
		},
		{
			name: "its owner was another one of the same name", in: makeInputs(made(other)), ready: "False/Orphaned", records: []string{"Skipped Orphaned 03:00:00"},
		},
		{
			name: "there is no workload at all", in: makeInputs(made(), func(in *Input) { in.Target = nil }), ready: "False/Orphaned", records: []string{"Skipped Orphaned 03:00:00"},
		},
		{
			name: "of a user", in: makeInputs(func(in *Input) { in.Restart.OwnerReferences = []metav1.OwnerReference{other} }),
			send: at("03:00:00"), active: true, next: tomorrow, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{name: "for the age of pods", in: makeInputs(limited(time.Hour), oldest(at("01:00:00")), made()), ready: "False/Orphaned"},
		{name: "for a change", in: makeInputs(changed("02:59:00"), made()), ready: "False/Orphaned"},
	})
}
