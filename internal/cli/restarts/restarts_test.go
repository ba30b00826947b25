// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// aRestart returns a ScheduledRestart whose target is the Deployment of the same name. The given
// changes are applied to it.
func aRestart(name, expression string, changes ...func(*tidekeeperv1.ScheduledRestart)) tidekeeperv1.ScheduledRestart {
	r := tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Schedule: tidekeeperv1.CronExpression(expression), TimeZone: "UTC", FailureLimit: 3,
		},
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func ready(status metav1.ConditionStatus, reason string) func(*tidekeeperv1.ScheduledRestart) {
	return func(r *tidekeeperv1.ScheduledRestart) {
		r.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: reason}}
	}
}

func lines(t *testing.T, tab *term.Table, s term.Screen) []string {
	t.Helper()
	var out strings.Builder
	if err := tab.WriteTo(&out, s); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func shown(items []tidekeeperv1.ScheduledRestart) []view.Restart {
	var all []view.Restart
	for i := range items {
		all = append(all, view.RestartOf(&items[i], view.SharedTargets(items)))
	}
	return all
}

func TestRestartsTable(t *testing.T) {
	items := []tidekeeperv1.ScheduledRestart{
		aRestart("api", "0 3 * * *", ready("True", "Scheduled"), func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime = at(noon.Add(15 * time.Hour))
			r.Status.LastSuccessfulTime = at(noon.Add(-9 * time.Hour))
			r.Status.History = []tidekeeperv1.RestartRecord{{ScheduledTime: *at(noon.Add(-9 * time.Hour)), Outcome: tidekeeperv1.OutcomeSucceeded}}
		}),
		aRestart("herd", "0 3 * * *", ready("True", "Scheduled"), func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.SpreadSeconds, r.Status.NextScheduleTime = 600, at(noon.Add(15*time.Hour))
			r.Status.NextStartTime = at(r.Status.NextScheduleTime.Add(view.OffsetOf(r)))
		}),
		aRestart("new", "@daily"),
		aRestart("off", "@daily", ready("True", "Suspended"), func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true }),
		aRestart("sick", "@hourly", ready("True", "TargetUnhealthy"), func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime = at(noon)
			r.Status.History = []tidekeeperv1.RestartRecord{
				{ScheduledTime: *at(noon.Add(-time.Hour)), Outcome: tidekeeperv1.OutcomeMissed, Reason: "TargetUnhealthy"}}
		}),
		aRestart("aged", "", ready("True", "Scheduled"), func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.MaxPodAgeSeconds, r.Status.NextAgeTime = 86400, at(noon.Add(15*time.Hour))
		}),
		aRestart("busy", "@hourly", ready("False", "Restarting"), func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: *at(noon.Add(-time.Minute)), StartedTime: *at(noon.Add(-time.Minute))}
		}),
	}
	want := []string{
		"NAME   TARGET            SCHEDULE    STATUS            LAST   OUTCOME                  SUCCESS   NEXT (UTC)",
		"api    Deployment/api    0 3 * * *   Scheduled         9h     Succeeded                9h        tomorrow 03:00 (in 15h)",
		"herd   Deployment/herd   0 3 * * *   Scheduled         -      -                        never     tomorrow 03:01 (in 15h), spread +1m50s",
		"new    Deployment/new    @daily      Unknown           -      -                        never     -",
		"off    Deployment/off    @daily      Suspended         -      -                        never     -",
		"sick   Deployment/sick   @hourly     TargetUnhealthy   60m    Missed/TargetUnhealthy   never     due since today 12:00",
		"aged   Deployment/aged   -           Scheduled         -      -                        never     tomorrow 03:00 (in 15h)",
		"busy   Deployment/busy   @hourly     Restarting        -      -                        never     under way for 60s",
	}
	if diff := cmp.Diff(want, lines(t, listTable(shown(items), false, false, noon, time.UTC), term.Screen{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	head := lines(t, listTable(shown(items), true, true, noon, time.UTC), term.Screen{})[0]
	if got := strings.Fields(head); got[0] != "NAMESPACE" || got[len(got)-1] != "MESSAGE" {
		t.Errorf("the columns of -A -o wide are %s", head)
	}
}

func TestHistoryTable(t *testing.T) {
	r := aRestart("web", "@daily", func(r *tidekeeperv1.ScheduledRestart) {
		r.Status.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: *at(noon.Add(-30 * time.Second)), StartedTime: *at(noon.Add(-20 * time.Second)), Trigger: "Request"}
		r.Status.History = []tidekeeperv1.RestartRecord{
			{ScheduledTime: *at(noon.Add(-12 * time.Hour)), StartedTime: at(noon.Add(-12*time.Hour + time.Second)), CompletedTime: *at(noon.Add(-12*time.Hour + 91*time.Second)),
				Trigger: "Schedule", Outcome: tidekeeperv1.OutcomeSucceeded, Pods: 12,
				PodStartup: &tidekeeperv1.PodStartup{Pods: 12, MedianSeconds: 4, MaxSeconds: 150, MedianChangeSeconds: new(int32(-2)), MaxChangeSeconds: new(int32(0))}},
			{ScheduledTime: *at(noon.Add(-24 * time.Hour)), StartedTime: at(noon.Add(-24 * time.Hour)), CompletedTime: *at(noon.Add(-24*time.Hour + time.Second)),
				Trigger: "Schedule", Outcome: tidekeeperv1.OutcomeSucceeded, Pods: 2, PodStartup: &tidekeeperv1.PodStartup{Pods: 1, MedianSeconds: 6, MaxSeconds: 150}},
			{ScheduledTime: *at(noon.Add(-36 * time.Hour)), CompletedTime: *at(noon.Add(-35 * time.Hour)), Trigger: "Schedule",
				Outcome: tidekeeperv1.OutcomeMissed, Reason: "Superseded", Message: "a later tick is due already", EarlierTicks: 2},
		}
	})
	want := []string{
		"TICK                      TRIGGER    OUTCOME             WAITED   TOOK   PODS   READY IN    WORST   MESSAGE",
		"2026-11-21 11:59:30 UTC   Request    Restarting          10s      20s    -      -           -",
		"2026-11-21 00:00:00 UTC   Schedule   Succeeded           1s       90s    12     4s (-2s)    2m30s",
		"2026-11-20 12:00:00 UTC   Schedule   Succeeded           0s       1s     2      6s, 1 pod   2m30s",
		"2026-11-20 00:00:00 UTC   Schedule   Missed/Superseded   -        -      -      -           -       a later tick is due already; so were 2 ticks before it",
	}
	if diff := cmp.Diff(want, lines(t, historyTable(view.HistoryOf(&r, noon), time.UTC), term.Screen{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestTime(t *testing.T) {
	r := aRestart("web", "@daily")
	now := noon.Add(300 * time.Millisecond)
	if got := requestTime(&r, now); !got.Equal(noon) {
		t.Errorf("%s, want whole seconds", got)
	}
	r.Status.LastRequestTime = at(noon)
	if got := requestTime(&r, now); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("%s, want a second after the last request", got)
	}
}

// TestRequestTimeIsAfterThePodsToEvict checks that a pod created earlier in the same second counts
// as older than the request. Its creation time is truncated to whole seconds.
func TestRequestTimeIsAfterThePodsToEvict(t *testing.T) {
	r := aRestart("web", "@daily")
	r.Spec.Method = tidekeeperv1.MethodEvict
	for _, now := range []time.Time{noon.Add(time.Nanosecond), noon.Add(300 * time.Millisecond), noon.Add(time.Second)} {
		got := requestTime(&r, now)
		if want := noon.Add(time.Second); !got.Equal(want) {
			t.Errorf("at %s: %s, want %s", now, got, want)
		}
		if !evict.IsOld(evict.Pod{Created: noon}, got) {
			t.Errorf("at %s: a pod that exists is not old at %s", now, got)
		}
	}
}

func TestCalendarTable(t *testing.T) {
	p := view.NewPlanner(noon, noon.Add(2*time.Hour))
	for _, r := range []tidekeeperv1.ScheduledRestart{
		aRestart("a", "0 13 * * *"), aRestart("b", "0 13 * * *"), aRestart("c", "0 13,14 * * *"), aRestart("now", "1 12 * * *"),
	} {
		p.Add(&r)
	}
	narrow := term.Screen{Terminal: true, Width: 60}
	tab := lines(t, calendarTable(p.Calendar(t.Context(), view.MostListed), true, noon, time.UTC, narrow), narrow)
	if diff := cmp.Diff([]string{
		"DAY          TIME (UTC)   STARTS              RESTARTS",
		"             13:00        3        ████████   shop/a, shop/…",
	}, []string{tab[0], tab[2]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	unlisted := lines(t, calendarTable(p.Calendar(t.Context(), 0), false, noon, time.UTC, term.Screen{}), term.Screen{})
	if strings.Join(strings.Fields(unlisted[1]), " ") != "Sat 21 Nov 12:01 1 not listed" {
		t.Errorf("the table says %q", unlisted[1])
	}
}
