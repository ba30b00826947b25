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
	"tidekeeper.dev/tidekeeper/internal/test/setting"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// check panics if a restart for the given tick must not start now.
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

// account compares the history entries with the ticks that were due, and panics if a tick is
// missing or was decided twice.
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
		// After an edit the schedule starts again from the current time, even if a clock was ahead
		// before.
		if decided[key] > 1 && !s.edits {
			panic(fmt.Sprintf("the tick of %s was decided twice", formatTime(tick)))
		}
	}
	for _, r := range s.records {
		note(r.ScheduledTime.UTC(), r.Trigger, r.EarlierTicks)
		started := s.starts[start{r.ScheduledTime.UTC(), r.Trigger}] > 0
		// A tick may succeed without a restart of its own, if a restart by another client, or by
		// another trigger in the same second, came first.
		if r.Outcome == tidekeeperv1.OutcomeSucceeded && !started && r.Message == "" && !s.startedAt(r.ScheduledTime.UTC()) {
			panic(fmt.Sprintf("the tick of %s is recorded as %s but was never started", formatTime(r.ScheduledTime.Time), r.Outcome))
		}
		if (r.Outcome == tidekeeperv1.OutcomeMissed || r.Outcome == tidekeeperv1.OutcomeSkipped) && started &&
			// The start is unknown for a deleted workload. After an edit the schedule starts again
			// from the current time, even if a clock was ahead before.
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
	// Every tick from the creation of the ScheduledRestart to the last decided tick must be
	// accounted for.
	ticks := 0
	for tick, ok := s.counted().Next(s.restart.CreationTimestamp.Time); ok && !tick.After(last); tick, ok = s.counted().Next(tick) {
		ticks++
	}
	if ticks != sum {
		panic(fmt.Sprintf("%[2]d of %[1]d ticks are accounted for", ticks, sum))
	}
}

// startedAt reports whether any trigger has started a restart for a tick at the given time.
func (s *simulation) startedAt(tick time.Time) bool {
	return slices.ContainsFunc(Triggers, func(trigger tidekeeperv1.Trigger) bool { return s.starts[start{tick, trigger}] > 0 })
}

// TestEveryTickOnce checks in random simulations that every tick is either started or recorded with
// the reason for which it was not started. A restart must start exactly once, before its deadline,
// and never on a broken workload.
func TestEveryTickOnce(t *testing.T) {
	// make test-all runs more cases, and each night CASES sets three times as many. With the race
	// detector each case takes six times as long, and more cases would not find more races.
	cases := 4_000
	switch all := setting.Number(t, "CASES", 20_000, 1_000); {
	case raceDetector:
		cases = 1_000
	case os.Getenv("TEST_ALL") != "":
		cases = all
	}
	// Run the parts in parallel, because this is the slowest test of all packages.
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

// tally counts events in simulations: started ticks (ticks for pod age and for changes are also
// counted as aged and changed), history entries, early claims, claims that were taken back, ticks
// that a freeze or a query held back at the last moment, evicted pods, and rejected evictions.
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

// playCase runs the simulation with the given seed, and fails the test if a check of the simulation
// panics.
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

// mustBeStorable panics if the API server would reject a time in the status. Times must have a year
// of four digits in UTC.
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
