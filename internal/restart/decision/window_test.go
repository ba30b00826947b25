// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// windowAt adds a window of the given length that opens at the ticks of a cron expression in UTC.
func windowAt(expression string, length time.Duration) func(*Input) {
	return func(in *Input) {
		in.Restart.Spec.Windows = append(in.Restart.Spec.Windows, tidekeeperv1.RestartWindow{
			Schedule: tidekeeperv1.CronExpression(expression), DurationSeconds: int32(length / time.Second),
		})
		var err error
		if in.Ticks, in.Windows, err = ParseSchedule(&in.Restart.Spec); err != nil {
			panic(err)
		}
	}
}

// lastTook adds a successful restart on the previous day, with the given duration, to the history.
func lastTook(length time.Duration) func(*Input) {
	return func(in *Input) {
		started := at("03:00:00").AddDate(0, 0, -1)
		in.Restart.Status.History = []tidekeeperv1.RestartRecord{
			{ScheduledTime: metav1.Time{Time: started}, Trigger: tidekeeperv1.TriggerSchedule, Outcome: tidekeeperv1.OutcomeFailed, StartedTime: &metav1.Time{Time: started}, CompletedTime: metav1.Time{Time: started.Add(time.Hour)}},
			{ScheduledTime: metav1.Time{Time: started}, Trigger: tidekeeperv1.TriggerSchedule, Outcome: tidekeeperv1.OutcomeSucceeded, StartedTime: &metav1.Time{Time: started}, CompletedTime: metav1.Time{Time: started.Add(length)}},
		}
	}
}

func TestWindows(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   Input
		send bool
		// reason and message are the expected reason and message of the condition Ready. wake is
		// the expected time of the next decision.
		reason, message string
		wake            time.Time
		record          string
	}{
		{
			name: "open", in: makeInputs(windowAt("0 2 * * *", 2*time.Hour)),
			send: true, reason: "Restarting", message: "restarting Deployment web for the tick of 2026-06-10T03:00:00Z", wake: at("03:30:01"),
		},
		{
			name: "opens before the deadline", in: makeInputs(windowAt("10 3 * * *", time.Hour)),
			reason: "WindowClosed", message: "a restart is due and waits: no window is open; the next one opens at 2026-06-10T03:10:00Z", wake: at("03:10:00"),
		},
		{
			name: "has opened before the deadline", in: makeInputs(windowAt("10 3 * * *", time.Hour), now("03:10:00")),
			send: true, reason: "Restarting", message: "restarting Deployment web for the tick of 2026-06-10T03:00:00Z", wake: at("03:40:00"),
		},
		{
			name:   "the last restart took longer than is left",
			in:     makeInputs(windowAt("0 2 * * *", 70*time.Minute), lastTook(11*time.Minute)),
			reason: "WindowClosed", message: "a restart is due and waits: the window closes at 2026-06-10T03:10:00Z, and the last restart took 11m0s; the next one opens at 2026-06-11T02:00:00Z",
			wake: at("03:15:01"),
		},
		{
			name:   "and then misses its deadline",
			in:     makeInputs(windowAt("0 2 * * *", 70*time.Minute), lastTook(11*time.Minute), now("03:15:01")),
			reason: "Scheduled", message: "next restart at 2026-06-11T03:00:00Z", wake: tomorrow,
			record: "Missed WindowClosed not started before the deadline: no window is open; the next one opens at 2026-06-11T02:00:00Z",
		},
		{
			name: "the last restart fits into what is left",
			in:   makeInputs(windowAt("0 2 * * *", 70*time.Minute), lastTook(9*time.Minute)),
			send: true, reason: "Restarting", message: "restarting Deployment web for the tick of 2026-06-10T03:00:00Z", wake: at("03:30:01"),
		},
		{
			name:   "a request waits for the next window",
			in:     makeInputs(windowAt("0 2 * * *", 2*time.Hour), requestAt("12:00:00"), now("12:00:05"), nextTomorrow),
			reason: "WindowClosed", message: "a restart is due and waits: no window is open; the next one opens at 2026-06-11T02:00:00Z",
			wake: at("02:00:00").AddDate(0, 0, 1),
		},
		{
			name: "and has its deadline from then on",
			in: makeInputs(windowAt("0 2 * * *", 2*time.Hour), requestAt("12:00:00"), nextTomorrow, func(in *Input) {
				in.Now = at("02:15:00").AddDate(0, 0, 1)
			}),
			send: true, reason: "Restarting", message: "restarting Deployment web for the tick of 2026-06-10T12:00:00Z", wake: at("02:45:00").AddDate(0, 0, 1),
		},
		{
			name:   "a tick of the schedule is outside",
			in:     makeInputs(windowAt("0 2 * * 6", 2*time.Hour), func(in *Input) { in.Restart.Status.NextScheduleTime = nil }),
			reason: "Scheduled", message: "next restart at 2026-06-13T03:00:00Z; the tick of 2026-06-12T03:00:00Z before it is outside all windows and does not count",
			wake: at("03:00:00").AddDate(0, 0, 3),
		},
		{
			name:   "all ticks of the schedule are outside",
			in:     makeInputs(windowAt("0 5 * * *", 2*time.Hour), func(in *Input) { in.Restart.Status.NextScheduleTime = nil }),
			reason: "OutsideWindows", message: "no tick of the schedule is inside a window until 2027-07-15T04:44:59Z, when the search goes on",
			wake: time.Date(2027, 7, 15, 4, 44, 59, 0, time.UTC),
		},
		{
			name: "the search goes on where it ended, also if that was in the past",
			in: makeInputs(windowAt("0 5 * * *", 2*time.Hour), windowAt("30 2 12 6 *", time.Hour), func(in *Input) {
				in.Restart.Status.NextScheduleTime = nil
				in.Restart.Status.NoTickUntil = &metav1.Time{Time: at("02:00:00").AddDate(0, 0, 2)}
				in.Now = at("03:05:00").AddDate(0, 0, 2)
			}),
			send: true, reason: "Restarting", message: "restarting Deployment web for the tick of 2026-06-12T03:00:00Z", wake: at("03:35:00").AddDate(0, 0, 2),
		},
		{
			name: "and not before",
			in: makeInputs(windowAt("0 5 * * *", 2*time.Hour), windowAt("30 2 12 6 *", time.Hour), func(in *Input) {
				in.Restart.Status.NextScheduleTime = nil
				in.Restart.Status.NoTickUntil = &metav1.Time{Time: at("02:00:00").AddDate(0, 0, 2)}
			}),
			reason: "OutsideWindows", message: "no tick of the schedule is inside a window until 2026-06-12T02:00:00Z, when the search goes on",
			wake: at("02:00:00").AddDate(0, 0, 2),
		},
		{
			name:   "windows that are edited while the tick waits",
			in:     makeInputs(windowAt("0 5 * * *", 2*time.Hour), func(in *Input) { in.Restart.Generation = 2 }, windowAt("0 2 * * 6", 2*time.Hour)),
			reason: "Scheduled", message: "next restart at 2026-06-13T03:00:00Z; the tick of 2026-06-12T03:00:00Z before it is outside all windows and does not count",
			wake:   at("03:00:00").AddDate(0, 0, 3),
			record: "Skipped Edited the schedule or its windows were edited before the restart was started, and no longer have this tick",
		},
		{
			name:   "what runs when the window closes continues",
			in:     makeInputs(windowAt("0 2 * * *", 70*time.Minute), active, withTarget(sentTo), now("03:20:00")),
			reason: "Restarting", message: "restarting Deployment web for the tick of 2026-06-10T03:00:00Z", wake: at("03:30:01"),
		},
		{
			name: "windows that are edited between the claim of a request and the patch",
			in: makeInputs(windowAt("0 5 * * *", time.Hour), active, unsent, requestAt("03:00:00"), func(in *Input) {
				in.Restart.Status.Active.Trigger = tidekeeperv1.TriggerRequest
				in.Restart.Status.NextScheduleTime, in.Restart.Generation = nil, 2
				in.Restart.Spec.Suspend = true
			}),
			reason: "Suspended", message: "the schedule is suspended; to resume it, set spec.suspend to false", wake: at("03:00:01"),
			record: "Skipped Edited the windows were edited before the restart was sent, and none is open now",
		},
		{
			name:   "a window that has closed between the claim and the patch",
			in:     makeInputs(windowAt("0 2 * * *", 61*time.Minute), active, unsent, now("03:02:00")),
			reason: "WindowClosed", message: "a restart is due and waits: no window is open; the next one opens at 2026-06-11T02:00:00Z", wake: at("03:15:01"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.in)
			if got := !d.Send.IsZero(); got != tc.send {
				t.Errorf("sends: %v, want %v", got, tc.send)
			}
			ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady)
			if ready.Reason != tc.reason || ready.Message != tc.message {
				t.Errorf("%s: %s\nwant %s: %s", ready.Reason, ready.Message, tc.reason, tc.message)
			}
			if !d.Wake.Equal(tc.wake) {
				t.Errorf("wakes at %s, want %s", d.Wake, tc.wake)
			}
			record := ""
			for _, r := range d.Records {
				record += string(r.Outcome) + " " + r.Reason + " " + r.Message
			}
			if record != tc.record {
				t.Errorf("record %q, want %q", record, tc.record)
			}
		})
	}
}

// nextTomorrow changes the status so that today's tick has already been decided.
func nextTomorrow(in *Input) {
	in.Restart.Status.NextScheduleTime = &metav1.Time{Time: tomorrow}
}

// TestClaimAheadOfAWindow checks that a tick is claimed early if a window will be open when it is
// due, and is not claimed if the windows will still be closed then.
func TestClaimAheadOfAWindow(t *testing.T) {
	ahead := func(in *Input) { in.ClaimAhead = 10 * time.Second }
	opens := Decide(makeInputs(windowAt("0 3 * * *", time.Hour), ahead, now("02:59:55")))
	if opens.BeforeClaim == nil || !opens.Send.IsZero() {
		t.Errorf("a tick at the opening of its window: %+v; want that it is claimed, and not sent", opens.Status.Active)
	}
	later := Decide(makeInputs(windowAt("5 3 * * *", time.Hour), ahead, now("02:59:55")))
	if later.BeforeClaim != nil {
		t.Errorf("a tick before the opening of its window: %+v; want that it is not claimed", later.Status.Active)
	}
}

// TestRequestAndTickAtTheOpening checks that a single restart serves a request and a tick that are
// both due when a window opens.
func TestRequestAndTickAtTheOpening(t *testing.T) {
	in := makeInputs(windowAt("0 3 * * *", time.Hour), requestAt("01:00:00"), func(in *Input) { in.ClaimAhead = 10 * time.Second })
	for _, now := range []string{"00:59:55", "02:59:55"} {
		in.Now = at(now)
		if d := Decide(in); d.Status.Active != nil {
			t.Errorf("at %s the tick of %s is claimed", now, d.Status.Active.ScheduledTime)
		}
	}
	in.Now = at("03:00:00")
	d := Decide(in)
	if !d.Send.Equal(at("03:00:00")) || len(d.Records) != 1 || d.Records[0].Reason != tidekeeperv1.ReasonSuperseded || d.Records[0].Trigger != tidekeeperv1.TriggerRequest {
		t.Errorf("sends %s, records %+v; want the tick of 03:00, and that it serves the request", d.Send, d.Records)
	}
}

// TestInvalidWindows checks that an invalid window closes all windows, even for a requested
// restart.
func TestInvalidWindows(t *testing.T) {
	in := makeInputs(requestAt("02:59:00"), withSpec(func(spec *tidekeeperv1.ScheduledRestartSpec) {
		spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 2 * * *", DurationSeconds: 7200}, {Schedule: "0 25 * * *", DurationSeconds: 60}}
	}))
	in.Ticks, in.Windows, in.Invalid = ParseSchedule(&in.Restart.Spec)
	if in.Invalid == nil {
		t.Fatal("the windows are valid")
	}
	d := Decide(in)
	ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady)
	if want := `windows[1]: schedule "0 25 * * *": `; !d.Send.IsZero() || ready.Reason != tidekeeperv1.ReasonInvalidSchedule || ready.Message[:len(want)] != want {
		t.Errorf("sends %v, %s: %s; want nothing sent, and %s…", d.Send, ready.Reason, ready.Message, want)
	}
}
