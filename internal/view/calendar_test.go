// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

// aRestart returns a ScheduledRestart whose target is the Deployment of the same name. The given
// changes are applied to it.
func aRestart(name, expression string, changes ...func(*tidekeeperv1.ScheduledRestart)) tidekeeperv1.ScheduledRestart {
	r := tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Schedule: tidekeeperv1.CronExpression(expression), TimeZone: "UTC", FailureLimit: 3,
		},
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func calendarOf(t *testing.T, items []tidekeeperv1.ScheduledRestart, now, until time.Time) Calendar {
	t.Helper()
	p := NewPlanner(now, until)
	for i := range items {
		p.Add(&items[i])
	}
	return p.Calendar(t.Context(), MostListed)
}

// TestCalendarWithWindows checks that a tick outside the windows waits until the next window opens,
// unless its deadline passes before that.
func TestCalendarWithWindows(t *testing.T) {
	within := func(deadline int32) func(*tidekeeperv1.ScheduledRestart) {
		return func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.StartingDeadlineSeconds = deadline
			r.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "30 13 * * *", DurationSeconds: 3600}}
		}
	}
	items := []tidekeeperv1.ScheduledRestart{
		aRestart("impatient", "@hourly", within(900)), aRestart("patient", "@hourly", within(3600)), aRestart("free", "0 15 * * *"),
	}
	var got []string
	for _, m := range calendarOf(t, items, noon, noon.Add(4*time.Hour)).Minutes {
		for _, s := range m.Starts {
			got = append(got, fmt.Sprintf("%s %s for %s", s.Name, s.Start.Format("15:04"), s.Tick.Format("15:04")))
		}
	}
	want := []string{"patient 13:30 for 13:00", "impatient 14:00 for 14:00", "patient 14:00 for 14:00", "free 15:00 for 15:00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

func TestCalendar(t *testing.T) {
	spread := func(r *tidekeeperv1.ScheduledRestart) { r.Spec.SpreadSeconds = 3600 }
	offset := schedule.Spread("shop", "spread", time.Hour)
	items := []tidekeeperv1.ScheduledRestart{
		aRestart("a", "0 13 * * *"), aRestart("b", "0 13 * * *"), aRestart("c", "0 13,14 * * *"),
		aRestart("spread", "0 12 * * *", spread), // due at noon, but starts later
		aRestart("off", "* * * * *", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true }),
		aRestart("failed", "* * * * *", func(r *tidekeeperv1.ScheduledRestart) { r.Status.ConsecutiveFailures = 3 }),
		aRestart("wrong", "60 * * * *"),
		aRestart("later", "30 14 * * *"),
		aRestart("past", "0 12 * * *"),
	}
	c := calendarOf(t, items, noon, noon.Add(2*time.Hour))
	var got []string
	for _, m := range c.Minutes {
		var names []string
		for _, s := range m.Starts {
			names = append(names, s.Name)
		}
		got = append(got, fmt.Sprintf("%s %d %s", m.Time.Format("15:04"), m.Count, strings.Join(names, " ")))
	}
	want := []string{noon.Add(offset).Format("15:04") + " 1 spread", "13:00 3 a b c", "14:00 1 c"}
	if s := c.Minutes[0].Starts[0]; s.OffsetSeconds != int64(offset/time.Second) || !s.Tick.Equal(noon) || !s.Start.Equal(noon.Add(offset)) {
		t.Errorf("the start of the one with a spread is %+v, want it %s after the tick", s, offset)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(c.Problems) != 1 || !strings.HasPrefix(c.Problems[0], "shop/wrong: schedule ") {
		t.Errorf("problems %q, want one about shop/wrong", c.Problems)
	}
}

// TestCalendarIsFast checks that a calendar of 10,000 schedules takes at most one allocation per
// start. Unlike the duration, the number of allocations does not depend on the machine.
func TestCalendarIsFast(t *testing.T) {
	const starts, mostWork = 70_000, 70_000
	items := make([]tidekeeperv1.ScheduledRestart, 10000)
	for i := range items {
		items[i] = aRestart(fmt.Sprint("r", i), fmt.Sprintf("%d %d * * *", i%60, i%24), func(r *tidekeeperv1.ScheduledRestart) { r.Spec.SpreadSeconds = 600 })
	}
	total := 0
	work := testing.AllocsPerRun(1, func() {
		total = 0
		for _, m := range calendarOf(t, items, noon, noon.Add(7*24*time.Hour)).Minutes {
			total += m.Count
		}
	})
	t.Logf("%d starts with %.0f allocations", total, work)
	if total != starts || work > mostWork {
		t.Errorf("%d starts with %.0f allocations, want %d with at most %d", total, work, starts, mostWork)
	}
}

// TestCalendarListsSoMany checks that the number of listed starts is bounded, that either all or
// none of a minute's starts are listed, and that unlisted starts are still counted.
func TestCalendarListsSoMany(t *testing.T) {
	p := NewPlanner(noon, noon.Add(10*time.Minute))
	for _, name := range []string{"a", "b", "c"} {
		r := aRestart(name, "* * * * *")
		p.Add(&r)
	}
	for most, listed := range map[int]int{100: 10, 30: 10, 29: 9, 3: 1, 2: 0} {
		c := p.Calendar(t.Context(), most)
		if len(c.Minutes) != 10 || c.Unlisted != 30-3*listed {
			t.Errorf("at most %d: %d minutes, %d not listed, want 10 and %d", most, len(c.Minutes), c.Unlisted, 30-3*listed)
		}
		for i, m := range c.Minutes {
			want := 0
			if i < listed {
				want = 3
			}
			if m.Count != 3 || len(m.Starts) != want || !m.Time.Equal(noon.Add(time.Duration(i+1)*time.Minute)) {
				t.Errorf("at most %d: minute %d is %+v, want 3 with %d listed", most, i, m, want)
			}
		}
	}
}

// TestCalendarOfEveryMinuteIsSmall checks that a calendar of very frequent schedules does not take
// much memory, because tenants control the schedules.
func TestCalendarOfEveryMinuteIsSmall(t *testing.T) {
	p := NewPlanner(noon, noon.Add(24*time.Hour))
	for i := range 2000 {
		r := aRestart(fmt.Sprint("r", i), "* * * * *")
		p.Add(&r)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := p.Calendar(t.Context(), MostListed)
	runtime.ReadMemStats(&after)
	// There are 2,880,000 starts. Storing them would take about 100 bytes each.
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 64 {
		t.Errorf("it took %d MiB", grown)
	}
	if want := 2000 * (24*60 - MostListed/2000); c.Unlisted != want {
		t.Errorf("%d are not listed, want %d", c.Unlisted, want)
	}
}

// TestCalendarOfSeveralClusters checks that a joint calendar lists all clusters' starts, each with
// the cluster's context.
func TestCalendarOfSeveralClusters(t *testing.T) {
	c := Calendar{}
	for cluster, items := range map[string][]tidekeeperv1.ScheduledRestart{
		"prod": {aRestart("web", "0 13 * * *"), aRestart("api", "0 13 * * *"), aRestart("bad", "x")}, "edge": {aRestart("web", "0 13 * * *"), aRestart("late", "30 13 * * *")},
	} {
		p := NewPlanner(noon, noon.Add(2*time.Hour))
		for i := range items {
			p.Add(&items[i])
		}
		c.Join(cluster, p.Calendar(t.Context(), MostListed))
	}
	var got []string
	for _, m := range c.Minutes {
		got = append(got, fmt.Sprintf("%s %d", m.Time.Format("15:04"), m.Count))
		for _, s := range m.Starts {
			got = append(got, s.Context+":"+s.Name)
		}
	}
	want := []string{"13:00 3", "edge:web", "prod:api", "prod:web", "13:30 1", "edge:late"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if here := c.Minutes[0].Of("prod"); here.Count != 2 || here.Starts[1].Name != "web" {
		t.Errorf("of prod: %+v", here)
	}
	if len(c.Problems) != 1 || !strings.HasPrefix(c.Problems[0], "prod: shop/bad: ") {
		t.Errorf("problems: %q", c.Problems)
	}
}
