// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// stateAt returns the decision state for a ScheduledRestart of a healthy Deployment at the given
// time of day.
func stateAt(clock string, changes ...func(*state)) *state {
	restart := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	restart.Spec.FailureLimit, restart.Spec.StartingDeadlineSeconds = 3, 900
	s := &state{
		restart: restart, spec: &restart.Spec, status: &tidekeeperv1.ScheduledRestartStatus{}, now: at(clock),
		target: &workload.State{Kind: "Deployment", Name: "web", Pods: 1},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// show formats a candidate in one line.
func show(c *candidate) string {
	if c == nil {
		return ""
	}
	text := c.tick.Format("15:04") + " due " + c.due.Format("15:04")
	if !c.deadline.IsZero() {
		text += " until " + c.deadline.Format("15:04")
	}
	return text
}

func TestScheduleTrigger(t *testing.T) {
	hourly, err := schedule.Parse("0 * * * *", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	ticks := schedule.Ticks{Schedule: hourly, Offset: 10 * time.Minute, Deadline: 15 * time.Minute}
	for _, tt := range []struct {
		name, now string
		next      *metav1.Time
		want      string
		earlier   int
	}{
		{"none is known", "03:30:00", nil, "", 0},
		{"in its spread", "03:09:59", metaAt("03:00:00"), "", 0},
		{"due", "03:10:00", metaAt("03:00:00"), "03:00 due 03:10 until 03:25", 0},
		{"two later ticks are due", "05:10:00", metaAt("03:00:00"), "05:00 due 05:10 until 05:25", 2},
	} {
		trigger := &scheduleTrigger{state: stateAt(tt.now, func(s *state) { s.status.NextScheduleTime = tt.next }), ticks: ticks, history: &history{}}
		c := trigger.candidate()
		if show(c) != tt.want || c != nil && c.earlier != tt.earlier {
			t.Errorf("%s: %q with %+v, want %q with %d earlier ticks", tt.name, show(c), c, tt.want, tt.earlier)
		}
		if c == nil {
			continue
		}
		if trigger.pass(c); !trigger.state.status.NextScheduleTime.Equal(&metav1.Time{Time: c.tick.Add(time.Hour)}) {
			t.Errorf("%s: after it comes the tick of %s", tt.name, trigger.state.status.NextScheduleTime)
		}
	}
}

// TestScheduleTriggerIsEdited checks that an edit drops a tick that is not due yet, and skips a due
// tick that the schedule no longer has.
func TestScheduleTriggerIsEdited(t *testing.T) {
	hourly, err := schedule.Parse("0 * * * *", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, next string
		retargeted bool
		suspend    bool
		left       bool
		records    int
	}{
		{name: "not due", next: "04:00:00"},
		{name: "due", next: "03:00:00", left: true},
		{name: "due, of another target", next: "03:00:00", retargeted: true, records: 1},
		{name: "due, of another schedule", next: "03:07:00", records: 1},
		{name: "due, and stopped: that is the reason later", next: "03:07:00", suspend: true, left: true},
	} {
		past := &history{now: at("03:30:00")}
		trigger := &scheduleTrigger{state: stateAt("03:30:00", func(s *state) {
			s.status.NextScheduleTime, s.spec.Suspend = metaAt(tt.next), tt.suspend
		}), ticks: schedule.Ticks{Schedule: hourly}, history: past}
		if trigger.edited(tt.retargeted); (trigger.state.status.NextScheduleTime != nil) != tt.left || len(past.added) != tt.records {
			t.Errorf("%s: the next tick is %v, with records %+v", tt.name, trigger.state.status.NextScheduleTime, past.added)
		}
	}
}

func TestRequestTrigger(t *testing.T) {
	for _, tt := range []struct {
		name, annotation string
		last             *metav1.Time
		windows          schedule.Windows
		want             string
		wake             time.Time
	}{
		{name: "none"},
		{name: "due", annotation: "03:00:00", want: "03:00 due 03:00 until 03:15"},
		{name: "later", annotation: "04:00:00", wake: at("04:00:00")},
		{name: "served", annotation: "03:00:00", last: metaAt("03:00:00")},
		{name: "after the served one", annotation: "03:00:00", last: metaAt("02:00:00"), want: "03:00 due 03:00 until 03:15"},
		{name: "outside a window", annotation: "01:30:00", windows: window(), want: "01:30 due 02:00 until 02:15"},
	} {
		wake := &alarm{}
		trigger := &requestTrigger{state: stateAt("03:00:01", func(s *state) {
			s.status.LastRequestTime = tt.last
			if tt.annotation != "" {
				s.restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: formatTime(at(tt.annotation))}
			}
		}), windows: tt.windows, history: &history{}, wake: wake}
		if got := show(trigger.candidate()); got != tt.want || !wake.at.Equal(tt.wake) {
			t.Errorf("%s: %q, waking at %s; want %q, waking at %s", tt.name, got, wake.at, tt.want, tt.wake)
		}
	}
}

func TestAgeTrigger(t *testing.T) {
	created := at("02:00:00")
	ages := &PodAges{Oldest: created}
	for _, tt := range []struct {
		name    string
		now     string
		ages    *PodAges
		rolling bool
		change  func(*state)
		need    Need
		want    string
		wake    time.Time
	}{
		{name: "no limit", now: "03:00:00", change: func(s *state) { s.spec.MaxPodAgeSeconds = 0 }},
		{name: "suspended", now: "03:00:00", change: func(s *state) { s.spec.Suspend = true }},
		{name: "pods are unknown", now: "03:00:00", need: NeedPodAges},
		{name: "young", now: "02:59:59", ages: ages, wake: at("03:00:00")},
		{name: "old", now: "03:00:00", ages: ages, want: "03:00 due 03:00"},
		{name: "known to be young", now: "02:00:00", change: func(s *state) { s.status.NextAgeTime = metaAt("03:00:00") }, wake: at("03:00:00")},
		{
			name: "old, and being replaced", now: "03:30:00", change: func(s *state) { s.status.NextAgeTime = metaAt("03:00:00") },
			rolling: true, want: "03:00 due 03:00",
		},
		{name: "restarted since", now: "03:00:00", ages: ages, change: func(s *state) { s.target.RestartedAt = formatTime(at("02:30:00")) }, wake: at("03:30:00")},
	} {
		wake := &alarm{}
		s := stateAt(tt.now, func(s *state) { s.spec.MaxPodAgeSeconds = 3600 })
		if tt.change != nil {
			tt.change(s)
		}
		trigger := &ageTrigger{state: s, ages: tt.ages, history: &history{}, wake: wake}
		need := trigger.observe(false, tt.rolling)
		if got := show(trigger.candidate()); need != tt.need || got != tt.want || !wake.at.Equal(tt.wake) {
			t.Errorf("%s: needs %d, %q, waking at %s; want %d, %q, %s", tt.name, need, got, wake.at, tt.need, tt.want, tt.wake)
		}
	}
}

func TestChangeTrigger(t *testing.T) {
	config := func(hash string, live bool) *Config { return &Config{Hash: hash, Changed: at("03:00:00"), Live: live} }
	for _, tt := range []struct {
		name   string
		now    string
		known  string
		config *Config
		oldest string
		need   Need
		want   string
		hash   string
	}{
		{name: "at first sight, by the cache", now: "03:00:00", config: config("c1-1", false), need: NeedLiveConfig},
		{name: "at first sight", now: "03:00:00", config: config("c1-1", true), hash: "c1-1"},
		{name: "unchanged", now: "03:01:00", known: "c1-1", config: config("c1-1", false), hash: "c1-1"},
		{name: "changed, and not settled", now: "03:00:09", known: "c1-1", config: config("c1-2", true), hash: "c1-1"},
		{name: "changed, by the cache", now: "03:00:10", known: "c1-1", config: config("c1-2", false), oldest: "01:00:00", need: NeedLiveConfig, hash: "c1-1"},
		{name: "changed", now: "03:00:10", known: "c1-1", config: config("c1-2", true), oldest: "01:00:00", want: "03:00 due 03:00", hash: "c1-1"},
		{name: "changed before all pods were started", now: "03:01:00", known: "c1-1", config: config("c1-2", true), oldest: "03:00:30", hash: "c1-2"},
		{name: "changed, and pods are unknown", now: "03:00:10", known: "c1-1", config: config("c1-2", true), need: NeedPodAges, hash: "c1-1"},
	} {
		s := stateAt(tt.now, func(s *state) {
			s.spec.OnConfigChange, s.status.ConfigHash = tidekeeperv1.ConfigMapsOnly, tt.known
		})
		past := &history{}
		trigger := &changeTrigger{state: s, interval: &interval{state: s, history: past}, config: tt.config, settle: 10 * time.Second, history: past, wake: &alarm{}}
		if tt.oldest != "" {
			trigger.ages = &PodAges{Oldest: at(tt.oldest), Live: true}
		}
		need := trigger.observe(false)
		if got := show(trigger.candidate()); need != tt.need || got != tt.want || s.status.ConfigHash != tt.hash {
			t.Errorf("%s: needs %d, %q with the hash %q; want %d, %q, %q", tt.name, need, got, s.status.ConfigHash, tt.need, tt.want, tt.hash)
		}
	}
	if !podconfig.SameScope("c1-1", "c1-2") {
		t.Error("these hashes are of different scopes")
	}
}

// TestInterval checks that changes within the interval are counted once per restart, and that the
// count is reset after the content has been unchanged for an interval.
func TestInterval(t *testing.T) {
	s := stateAt("04:00:00", func(s *state) { s.spec.MinIntervalSeconds = 3600 })
	i, wake := &interval{state: s, history: &history{}}, &alarm{}
	if !i.ends().IsZero() {
		t.Errorf("without a restart it ends at %s", i.ends())
	}
	for n := range stormDelays {
		i.begin(&tidekeeperv1.ActiveRestart{StartedTime: *metaAt("03:30:00")})
		if !i.ends().Equal(at("04:30:00")) || i.stormy() {
			t.Fatalf("after %d restarts it ends at %s, and is a storm: %t", n, i.ends(), i.stormy())
		}
		i.count(at("03:40:00"))
		i.count(at("03:50:00"))
	}
	if s.status.ConsecutiveDelays != stormDelays || !i.stormy() {
		t.Errorf("%d delays, want %d", s.status.ConsecutiveDelays, stormDelays)
	}
	if i.settle(at("03:30:00"), wake); !wake.at.Equal(at("04:30:00")) || !i.stormy() {
		t.Errorf("it is forgotten before %s", wake.at)
	}
	if i.settle(at("03:00:00"), wake); i.stormy() {
		t.Error("a storm does not end")
	}
	s.status.LastChangeTime = metaAt("05:00:00")
	if !i.ends().IsZero() {
		t.Error("a start in the future counts")
	}
}

// TestUpcoming checks that upcoming returns the earlier of a tick and a request, or nil if both are
// due at the same time because a single restart serves both.
func TestUpcoming(t *testing.T) {
	for _, tt := range []struct{ next, request, want string }{
		{"", "", ""},
		{"04:00:00", "", "04:00 due 04:00 until 04:15"},
		{"", "05:00:00", "05:00 due 05:00 until 05:15"},
		{"04:00:00", "05:00:00", "04:00 due 04:00 until 04:15"},
		{"06:00:00", "05:00:00", "05:00 due 05:00 until 05:15"},
		{"05:00:00", "05:00:00", ""},
	} {
		s := stateAt("03:00:00", func(s *state) {
			if tt.next != "" {
				s.status.NextScheduleTime = metaAt(tt.next)
			}
			if tt.request != "" {
				s.restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: formatTime(at(tt.request))}
			}
		})
		all := &triggers{
			state: s, schedule: scheduleTrigger{state: s, ticks: schedule.Ticks{Deadline: 15 * time.Minute}, history: &history{}},
			request: requestTrigger{state: s, wake: &alarm{}},
		}
		if diff := cmp.Diff(tt.want, show(all.upcoming())); diff != "" {
			t.Errorf("tick %q, request %q (-want +got):\n%s", tt.next, tt.request, diff)
		}
	}
}
