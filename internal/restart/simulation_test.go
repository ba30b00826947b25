// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// simulation is a ScheduledRestart, its target and the managers that look
// after it, in a world where everything goes wrong: managers die between any
// two writes, caches are stale, answers are lost, clocks jump, people break,
// pause, delete and restart the target.
type simulation struct {
	random *rand.Rand
	trace  strings.Builder

	now     time.Time
	ticks   *schedule.Schedule
	offset  time.Duration
	restart *tidekeeperv1.ScheduledRestart

	// target as it is, with a version that each change raises; nil: deleted.
	target  *target
	version int
	// older is the target as a stale cache has it.
	older        *target
	olderVersion int

	// sent is what the manager that runs now remembers.
	sent time.Time

	// starts counts, per tick, how often the template was set to it.
	starts map[time.Time]int
	// records are all that were ever written.
	records []tidekeeperv1.RestartRecord
}

var simulatedSchedules = func() (all []*schedule.Schedule) {
	for _, expression := range []string{"0 3 * * *", "*/30 * * * *", "30 2 * * *", "@hourly", "15,45 0-6 * * 1-5"} {
		for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"} {
			s, err := schedule.Parse(expression, zone)
			if err != nil {
				panic(err)
			}
			all = append(all, s)
		}
	}
	return all
}()

func newSimulation(seed uint64) *simulation {
	random := rand.New(rand.NewPCG(seed, 0))
	s := &simulation{random: random, starts: map[time.Time]int{}}
	s.ticks = simulatedSchedules[random.IntN(len(simulatedSchedules))]
	// Around the changes of the clocks, half of the time.
	days := []time.Time{
		time.Date(2026, time.March, 28, 20, 0, 0, 0, time.UTC), time.Date(2026, time.October, 24, 20, 0, 0, 0, time.UTC),
		time.Date(2026, time.March, 8, 0, 0, 0, 0, time.UTC), time.Date(2026, time.June, 10, 0, 0, 0, 0, time.UTC),
	}
	s.now = days[random.IntN(len(days))].Add(time.Duration(random.IntN(86400)) * time.Second)
	if random.IntN(2) == 0 {
		s.offset = time.Duration(random.IntN(1800)) * time.Second
	}
	s.restart = &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1", Generation: 1, CreationTimestamp: metav1.Time{Time: s.now}},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef:               tidekeeperv1.TargetRef{Kind: KindDeployment, Name: "web"},
			StartingDeadlineSeconds: int32(60 + random.IntN(3600)), ProgressDeadlineSeconds: 1800,
			Precondition: tidekeeperv1.PreconditionHealthy, FailureLimit: 100, HistoryLimit: 3,
		},
	}
	s.create()
	return s
}

func (s *simulation) create() {
	s.change(&target{kind: KindDeployment, name: "web", uid: types.UID(fmt.Sprint("uid-", s.version)), pods: 3, rollout: rollout{available: true}})
}

// change replaces the target; what it was is what a stale cache shows.
func (s *simulation) change(t *target) {
	s.older, s.olderVersion = s.target, s.version
	s.target = t
	s.version++
}

func (s *simulation) log(format string, args ...any) {
	fmt.Fprintf(&s.trace, "%s "+format+"\n", append([]any{clockTime(s.now)}, args...)...)
}

// step lets one thing happen.
func (s *simulation) step() {
	switch s.random.IntN(12) {
	case 0, 1, 2:
		s.now = s.now.Add(time.Duration(s.random.IntN(120)) * time.Second)
	case 3:
		s.now = s.now.Add(time.Duration(s.random.IntN(5*3600)) * time.Second)
	case 4:
		// A clock that is set, or the leader's that differs.
		s.now = s.now.Add(time.Duration(s.random.IntN(7200)-3600) * time.Second)
		s.log("the clock was set")
	case 5:
		s.roll()
	case 6:
		s.disturb()
	case 7:
		s.sent = time.Time{}
		s.log("another manager takes over")
	}
	s.reconcile()
}

// roll lets a rollout that is under way end, or fail.
func (s *simulation) roll() {
	if s.target == nil || s.target.rollout.complete() {
		return
	}
	t := *s.target
	t.rollout = rollout{available: true}
	if s.random.IntN(5) == 0 {
		t.rollout = rollout{exceeded: true, message: "it is broken"}
	}
	s.change(&t)
	s.log("the target becomes %+v", t.rollout)
}

// disturb lets somebody do something to the target.
func (s *simulation) disturb() {
	if s.target == nil {
		s.create()
		s.log("the target is there again")
		return
	}
	t := *s.target
	switch s.random.IntN(6) {
	case 0:
		t.paused = !t.paused
	case 1:
		t.rollout.available = !t.rollout.available
	case 2:
		t.restartedAt = clockTime(s.now)
		t.rollout = rollout{updating: true}
	case 3:
		s.change(nil)
		s.log("the target is deleted")
		return
	case 4:
		t.restartedAt = clockTime(s.now.Add(24 * time.Hour)) // nonsense from the future
	case 5:
		t.restartedAt = "yesterday"
	}
	s.change(&t)
	s.log("the target is %+v", t)
}

// reconcile lets a manager decide on what it sees, and die at any moment.
func (s *simulation) reconcile() {
	seen, seenVersion := s.target, s.version
	if s.random.IntN(4) == 0 && s.version > 1 {
		seen, seenVersion = s.older, s.olderVersion
	}
	in := inputs{
		restart: s.restart, ticks: s.ticks, offset: s.offset, target: seen,
		slot: s.restart.Status.Active != nil, sent: s.sent, now: s.now,
	}
	d := decide(in)
	if d.wantsLive {
		in.live, in.target, seenVersion = true, s.target, s.version
		d = decide(in)
	}
	if d.wantsStartups {
		if !in.target.rollout.complete() {
			panic("the pods of a rollout that goes on are looked at")
		}
		in.startups = make([]time.Duration, s.random.IntN(4))
		for i := range in.startups {
			in.startups[i] = time.Duration(s.random.IntN(60)) * time.Second
		}
		d = decide(in)
	}
	if d.wantsSlot && s.random.IntN(3) > 0 {
		in.slot = true
		d = decide(in)
	}

	if s.dies("before it writes the status") {
		return
	}
	after := s.restart.DeepCopy()
	after.Status = *d.status.DeepCopy()
	s.restart = after
	if reason := meta.FindStatusCondition(d.status.Conditions, ConditionReady).Reason; !slices.Contains(readyReasons, reason) {
		panic(fmt.Sprintf("no series counts the reason %q", reason))
	}
	for _, r := range d.records {
		if !slices.Contains(tickReasons[r.Outcome], r.Reason) {
			panic(fmt.Sprintf("no series counts the ticks that are %s for %q", r.Outcome, r.Reason))
		}
		s.records = append(s.records, r)
		s.log("record: %s %s %s, earlier %d", clockTime(r.ScheduledTime.Time), r.Outcome, r.Reason, r.EarlierTicks)
	}
	if d.send.IsZero() || s.dies("before it sends the tick") {
		return
	}
	if seenVersion != s.version {
		s.log("the tick of %s is refused, as the target has changed", clockTime(d.send))
		return
	}
	t := *s.target
	if t.restartedAt != clockTime(d.send) {
		s.starts[d.send]++
		s.log("the tick of %s is sent", clockTime(d.send))
		s.check(d.send, &t)
	}
	t.restartedAt, t.lastTick = clockTime(d.send), clockTime(d.send)
	t.rollout = rollout{updating: true}
	s.change(&t)
	if s.dies("before it sees the answer") {
		return
	}
	s.sent = d.send
}

func (s *simulation) dies(when string) bool {
	if s.random.IntN(8) > 0 {
		return false
	}
	s.log("the manager dies %s", when)
	s.sent = time.Time{}
	return true
}

// check holds a start against what must be true at that moment.
func (s *simulation) check(tick time.Time, t *target) {
	switch {
	case s.starts[tick] > 1:
		panic(fmt.Sprintf("the tick of %s was started twice", clockTime(tick)))
	case s.now.Before(tick.Add(s.offset)):
		panic(fmt.Sprintf("the tick of %s was started too early", clockTime(tick)))
	case s.now.After(tick.Add(s.offset + seconds(s.restart.Spec.StartingDeadlineSeconds))):
		panic(fmt.Sprintf("the tick of %s was started after its deadline", clockTime(tick)))
	case t.paused || t.deleting || !t.rollout.complete():
		panic(fmt.Sprintf("the tick of %s was started onto %+v", clockTime(tick), t))
	}
}

// account holds what was recorded against all ticks that there were.
func (s *simulation) account() {
	decided := map[time.Time]int{}
	sum := 0
	var last time.Time
	note := func(tick time.Time, earlier int32) {
		decided[tick]++
		sum += 1 + int(earlier)
		if tick.After(last) {
			last = tick
		}
		if decided[tick] > 1 {
			panic(fmt.Sprintf("the tick of %s was decided twice", clockTime(tick)))
		}
	}
	for _, r := range s.records {
		note(r.ScheduledTime.UTC(), r.EarlierTicks)
		started := s.starts[r.ScheduledTime.UTC()] > 0
		// One that somebody else's restart came before is that one's success.
		if r.Outcome == tidekeeperv1.OutcomeSucceeded && !started && r.Message == "" {
			panic(fmt.Sprintf("the tick of %s is recorded as %s and was never started", clockTime(r.ScheduledTime.Time), r.Outcome))
		}
		if (r.Outcome == tidekeeperv1.OutcomeMissed || r.Outcome == tidekeeperv1.OutcomeSkipped) && started {
			panic(fmt.Sprintf("the tick of %s was started and is recorded as %s", clockTime(r.ScheduledTime.Time), r.Outcome))
		}
	}
	if active := s.restart.Status.Active; active != nil {
		note(active.ScheduledTime.UTC(), 0)
	}
	for tick := range s.starts {
		if decided[tick] == 0 {
			panic(fmt.Sprintf("the tick of %s was started and nothing tells of it", clockTime(tick)))
		}
	}
	if last.IsZero() {
		return
	}
	// Not one tick between the creation and the last that was decided is
	// unaccounted for.
	ticks := 0
	for tick, ok := s.ticks.Next(s.restart.CreationTimestamp.Time); ok && !tick.After(last); tick, ok = s.ticks.Next(tick) {
		ticks++
	}
	if ticks != sum {
		panic(fmt.Sprintf("of %d ticks %d are accounted for", ticks, sum))
	}
}

// TestEveryTickOnce: whatever happens, every tick is started exactly once
// within its deadline, and never onto what is broken, or it is on record with
// the reason why not.
func TestEveryTickOnce(t *testing.T) {
	cases := 100_000
	if testing.Short() {
		cases = 2_000
	}
	started, recorded := 0, 0
	for seed := range uint64(cases) {
		func() {
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
			started += len(s.starts)
			recorded += len(s.records)
		}()
	}
	if started == 0 || recorded == 0 {
		t.Fatalf("nothing was tested: %d starts, %d records", started, recorded)
	}
	t.Logf("%d cases with %d starts and %d records", cases, started, recorded)
}
