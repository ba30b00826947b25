// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// check panics if the tick must not be started now.
func (s *simulation) check(tick time.Time, t *workload.State, trigger tidekeeperv1.Trigger) {
	offset := s.offset
	if trigger != tidekeeperv1.TriggerSchedule {
		offset = 0
	}
	named, _ := s.counted().Next(tick.Add(-time.Second))
	due := tick.Add(offset)
	if opens, ok := s.windows.OpensAt(due); trigger != tidekeeperv1.TriggerSchedule && ok {
		due = opens
	}
	_, open := s.windows.ClosesAt(s.now)
	old := s.pods.Truncate(time.Second).Add(s.restart.Spec.GetMaxPodAge())
	if s.first != nil {
		first := &s.first.Status
		unfinished := first.NextScheduleTime != nil && !first.NextScheduleTime.After(due) || first.Active != nil && !first.Active.ScheduledTime.After(due)
		failed := len(first.History) > 0 && !first.History[0].ScheduledTime.After(due)
		if unfinished || failed {
			panic(fmt.Sprintf("the tick of %s was started before the one that comes first: %+v", formatTime(tick), first))
		}
	}
	switch {
	case trigger == tidekeeperv1.TriggerAge && (s.restart.Spec.MaxPodAgeSeconds == 0 || s.restart.Spec.Suspend):
		panic(fmt.Sprintf("the tick of %s was started for the age of pods, which is not limited", formatTime(tick)))
	case trigger == tidekeeperv1.TriggerAge && s.windows == nil && s.now.Before(old):
		panic(fmt.Sprintf("the tick of %s was started, but no pod is too old before %s", formatTime(tick), formatTime(old)))
	case trigger == tidekeeperv1.TriggerAge && !tick.After(s.pods.Truncate(time.Second)):
		panic(fmt.Sprintf("the tick of %s was started for pods that are as young as they can be", formatTime(tick)))
	case trigger == tidekeeperv1.TriggerSchedule && !named.Equal(tick):
		panic(fmt.Sprintf("the tick of %s was started, but the schedule %s does not have it", formatTime(tick), s.ticks))
	case trigger == tidekeeperv1.TriggerSchedule && s.restart.Spec.Suspend:
		panic(fmt.Sprintf("the tick of %s was started, but the schedule is suspended", formatTime(tick)))
	case trigger == tidekeeperv1.TriggerRequest && !parsed(s.restart.Annotations[tidekeeperv1.RestartNowAnnotation]).Equal(tick):
		panic(fmt.Sprintf("the request of %s was started, but was withdrawn", formatTime(tick)))
	case s.starts[start{tick, trigger}] > 1:
		panic(fmt.Sprintf("the tick of %s was started twice", formatTime(tick)))
	case s.queries.there && (s.queries.closed || s.now.Sub(s.queries.asked) >= answerLasts):
		panic(fmt.Sprintf("the tick of %s was started, and the queries were asked at %s and closed it: %t", formatTime(tick), s.queries.asked, s.queries.closed))
	case period.InForce(s.freezes, s.now) != nil:
		panic(fmt.Sprintf("the tick of %s was started while %s", formatTime(tick), period.InForce(s.freezes, s.now)))
	case !open:
		panic(fmt.Sprintf("the tick of %s was started while no window was open", formatTime(tick)))
	case s.now.Before(due):
		panic(fmt.Sprintf("the tick of %s was started too early", formatTime(tick)))
	case trigger != tidekeeperv1.TriggerAge && trigger != tidekeeperv1.TriggerChange && s.now.After(due.Add(seconds(s.restart.Spec.StartingDeadlineSeconds))):
		panic(fmt.Sprintf("the tick of %s was started after its deadline", formatTime(tick)))
	case t.Paused || t.Deleting || !t.Rollout.Complete():
		panic(fmt.Sprintf("the tick of %s was started on %+v", formatTime(tick), t))
	}
}

// account compares the records with all ticks that were due.
func (s *simulation) account() {
	decided := map[start]int{}
	sum := 0
	var last time.Time
	note := func(tick time.Time, trigger tidekeeperv1.Trigger, earlier int32) {
		key := start{tick, trigger}
		decided[key]++
		if trigger != tidekeeperv1.TriggerSchedule {
			if trigger == tidekeeperv1.TriggerRequest {
				delete(s.waited, tick)
			}
			if decided[key] > 1 {
				panic(fmt.Sprintf("the tick of %s for the trigger %s was decided twice", formatTime(tick), trigger))
			}
			return
		}
		sum += 1 + int(earlier)
		if tick.After(last) {
			last = tick
		}
		// After an edit the schedule starts from now, even if a clock was ahead.
		if decided[key] > 1 && !s.edits {
			panic(fmt.Sprintf("the tick of %s was decided twice", formatTime(tick)))
		}
	}
	for _, r := range s.records {
		note(r.ScheduledTime.UTC(), r.Trigger, r.EarlierTicks)
		started := s.starts[start{r.ScheduledTime.UTC(), r.Trigger}] > 0
		// If another client's restart came first, this is the success of that restart, and so it is
		// if that of another trigger was due in the same second.
		if r.Outcome == tidekeeperv1.OutcomeSucceeded && !started && r.Message == "" && !s.startedAt(r.ScheduledTime.UTC()) {
			panic(fmt.Sprintf("the tick of %s is recorded as %s but was never started", formatTime(r.ScheduledTime.Time), r.Outcome))
		}
		if (r.Outcome == tidekeeperv1.OutcomeMissed || r.Outcome == tidekeeperv1.OutcomeSkipped) && started &&
			// For a deleted workload this cannot be known, and after an edit the
			// schedule starts from now, even if a clock was ahead before.
			r.Reason != tidekeeperv1.ReasonTargetNotFound && !s.edits {
			panic(fmt.Sprintf("the tick of %s was started and is recorded as %s", formatTime(r.ScheduledTime.Time), r.Outcome))
		}
	}
	if active := s.restart.Status.Active; active != nil {
		note(active.ScheduledTime.UTC(), active.Trigger, 0)
	}
	for key := range s.starts {
		if decided[key] == 0 {
			panic(fmt.Sprintf("the tick of %s for the trigger %s was started but is not recorded", formatTime(key.tick), key.trigger))
		}
	}
	if waits := s.restart.Status.PendingRequestTime; waits != nil {
		delete(s.waited, waits.UTC())
	}
	for tick := range s.waited {
		panic(fmt.Sprintf("the request of %s has waited but is not recorded", formatTime(tick)))
	}
	if last.IsZero() || s.edits || s.ticks == nil {
		return
	}
	// Every tick from the creation to the last decided one must be accounted for.
	ticks := 0
	for tick, ok := s.counted().Next(s.restart.CreationTimestamp.Time); ok && !tick.After(last); tick, ok = s.counted().Next(tick) {
		ticks++
	}
	if ticks != sum {
		panic(fmt.Sprintf("%[2]d of %[1]d ticks are accounted for", ticks, sum))
	}
}

// startedAt reports whether a tick of that time was started, whatever its trigger.
func (s *simulation) startedAt(tick time.Time) bool {
	return slices.ContainsFunc(Triggers, func(trigger tidekeeperv1.Trigger) bool { return s.starts[start{tick, trigger}] > 0 })
}

// Whatever happens, every tick is either started exactly once, within its deadline and never on
// a broken workload, or recorded with the reason why not.
func TestEveryTickOnce(t *testing.T) {
	// With TEST_ALL, as in make test-all, many more; fewer with the race detector, by which each takes
	// six times as long, and which has nothing more to see in the next.
	cases := 4_000
	switch all := os.Getenv("TEST_ALL") != ""; {
	case raceDetector:
		cases = 1_000
	case all && os.Getenv("CI") != "":
		cases = 60_000
	case all:
		cases = 20_000
	}
	// Side by side, as no other package's tests take as long.
	const parts = 4
	var sum tally
	var lock sync.Mutex
	t.Run("cases", func(t *testing.T) {
		for part := range uint64(parts) {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := part; seed < uint64(cases); seed += parts {
					n := playCase(t, seed)
					lock.Lock()
					sum.add(n)
					lock.Unlock()
				}
			})
		}
	})
	if sum.started == 0 || sum.recorded == 0 || sum.claimed == 0 || sum.takenBack == 0 || sum.frozen == 0 || sum.heldBack == 0 || sum.aged == 0 || sum.changed == 0 || sum.evicted == 0 || sum.refused == 0 {
		t.Fatalf("nothing was tested: %+v", sum)
	}
	t.Logf("%d cases: %+v", cases, sum)
}

// tally counts what happened in cases: ticks that were started, of them those for the age of
// pods and for changes, records, claims before the tick was due, those that were taken back, and ticks that
// were frozen, or held back by a query, at the last moment; and pods that were evicted, and
// evictions that were refused.
type tally struct{ started, aged, changed, recorded, claimed, takenBack, frozen, heldBack, evicted, refused int }

func (t *tally) add(n tally) {
	t.started += n.started
	t.aged += n.aged
	t.changed += n.changed
	t.recorded += n.recorded
	t.claimed += n.claimed
	t.takenBack += n.takenBack
	t.frozen += n.frozen
	t.heldBack += n.heldBack
	t.evicted += n.evicted
	t.refused += n.refused
}

// playCase plays a case, and fails the test if a promise is broken in it.
func playCase(t *testing.T, seed uint64) tally {
	t.Helper()
	s := newSimulation(seed)
	defer func() {
		if problem := recover(); problem != nil {
			t.Fatalf("case %d: %v\n%s", seed, problem, s.trace.String())
		}
	}()
	for range 10 + s.random.IntN(30) {
		s.step()
	}
	s.account()
	n := tally{started: len(s.starts), recorded: len(s.records), claimed: s.claimed, takenBack: s.takenBack, frozen: s.frozen, heldBack: s.queries.heldBack, evicted: s.evicted, refused: s.refused}
	for key := range s.starts {
		if key.trigger == tidekeeperv1.TriggerAge {
			n.aged++
		}
		if key.trigger == tidekeeperv1.TriggerChange {
			n.changed++
		}
	}
	if seed%8 == 1 {
		s.staysYoung()
	}
	if seed%8 == 2 {
		s.staysFresh()
	}
	return n
}

// mustBeStorable panics if the API server would refuse the status because of a time: it
// requires years with four digits, in UTC.
func mustBeStorable(status *tidekeeperv1.ScheduledRestartStatus) {
	times := []*metav1.Time{status.NextScheduleTime, status.NextAgeTime, status.LastAgeTime, status.NextChangeTime, status.LastScheduleTime, status.LastSuccessfulTime, status.LastRequestTime, status.PendingRequestTime}
	if status.Active != nil {
		times = append(times, &status.Active.ScheduledTime, &status.Active.StartedTime)
	}
	for i := range status.History {
		times = append(times, &status.History[i].ScheduledTime, status.History[i].StartedTime, &status.History[i].CompletedTime)
	}
	for _, at := range times {
		if at != nil && (at.UTC().Year() < 1 || at.UTC().Year() > 9999) {
			panic(fmt.Sprintf("the status has the time %s", at))
		}
	}
}
