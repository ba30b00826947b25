// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// simulation simulates a ScheduledRestart, its target and the managers that reconcile it, while
// everything goes wrong: managers crash between any two writes, caches are stale, responses are
// lost, clocks jump, and users break, pause, delete and restart the target.
type simulation struct {
	random *rand.Rand
	trace  strings.Builder

	now     time.Time
	ticks   *schedule.Schedule
	windows schedule.Windows
	offset  time.Duration
	restart *tidekeeperv1.ScheduledRestart

	// target is the current target; nil if it was deleted. version is incremented at each change of
	// the target.
	target  *workload.State
	version int
	// older and olderVersion are the target and its version in a stale cache.
	older        *workload.State
	olderVersion int

	// sent is the last tick that the current manager remembers having sent. leading is the time at
	// which that manager became the leader.
	sent    time.Time
	leading time.Time
	// ahead is the time before the due time at which a tick may be claimed. beforeClaim is the
	// status before an early claim, as the current manager remembers it.
	ahead       time.Duration
	beforeClaim *tidekeeperv1.ScheduledRestartStatus
	// olderRestart is the ScheduledRestart in a stale cache, without the last change of its spec or
	// annotations.
	olderRestart *tidekeeperv1.ScheduledRestart

	// freezes lists the current freezes; olderFreezes lists the freezes in a stale cache.
	freezes, olderFreezes []period.Period
	// frozen counts the ticks that were held back by freezes that only the API server showed.
	frozen int

	queries questions
	// first is the predecessor of the ScheduledRestart; nil if it has none.
	first *tidekeeperv1.ScheduledRestart

	// edits is true if the spec may be edited during the simulation.
	edits bool
	// rolled is the set of ticks for which the current target has revisions. before is the state
	// that an undo restores. reverted is the set of ticks whose restarts were reverted.
	rolled   map[time.Time]bool
	before   *workload.State
	reverted map[time.Time]bool
	// waited is the set of requested times for which a restart had to wait.
	waited map[time.Time]bool

	// pods is the creation time of the target's oldest pod; olderPods is that time in a stale
	// cache. rolling is the start time of the rollout in progress.
	pods, olderPods, rolling time.Time
	contents
	evictions
	// sound is true once all failures have ended. wake is the wake-up time of the last decision.
	sound bool
	wake  time.Time

	// claimed counts the ticks that were claimed before they were due. takenBack counts the claims
	// that were taken back.
	claimed, takenBack int
	// starts counts the restarts that were started for each tick and trigger.
	starts map[start]int
	// records lists all history entries that were written to the status.
	records []tidekeeperv1.RestartRecord
}

// start identifies a restart by its tick and trigger, since ticks of different triggers may be at
// the same time.
type start struct {
	tick    time.Time
	trigger tidekeeperv1.Trigger
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
	s := &simulation{
		random: random, starts: map[start]int{}, edits: seed%2 == 1,
		reverted: map[time.Time]bool{}, waited: map[time.Time]bool{}, queries: questions{there: seed/2%4 == 0},
	}
	s.ticks = simulatedSchedules[random.IntN(len(simulatedSchedules))]
	// Three of the four days are close to a clock change.
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
			TargetRef:               tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"},
			StartingDeadlineSeconds: int32(60 + random.IntN(3600)), ProgressDeadlineSeconds: 1800,
			Precondition: tidekeeperv1.PreconditionHealthy, FailureLimit: 100, HistoryLimit: 3,
		},
	}
	if random.IntN(16) == 0 {
		s.windows = s.drawWindows()
	}
	if random.IntN(3) == 0 {
		s.restart.Spec.MaxPodAgeSeconds = s.drawAge()
		if s.edits && random.IntN(2) == 0 {
			s.ticks = nil
		}
	}
	if random.IntN(3) > 0 {
		s.ahead = time.Duration(1+random.IntN(90)) * time.Second
	}
	if random.IntN(8) == 0 {
		s.restart.Spec.After = []string{"first"}
		s.lead()
	}
	s.drawChange()
	s.drawMethod(seed)
	s.olderRestart = s.restart
	s.create()
	return s
}

func (s *simulation) create() {
	s.rolled, s.before = map[time.Time]bool{}, nil
	s.pods, s.olderPods, s.podsContent = s.now, s.now, s.content
	s.replaceAll(s.now, s.content)
	s.change(&workload.State{Kind: "Deployment", Name: "web", UID: types.UID(fmt.Sprint("uid-", s.version)), Pods: 3, Rollout: workload.Progress{Available: true}})
}

// change replaces the target with a new version. A stale cache then shows the previous version.
func (s *simulation) change(t *workload.State) {
	if s.target != nil && t != nil {
		at, isTime := parseTime(t.RestartedAt)
		if was, ok := parseTime(s.target.RestartedAt); ok && (!isTime || at.Before(was)) {
			s.reverted[was.UTC()] = true
			if tick, ok := parseTime(s.target.LastTick); ok {
				s.reverted[tick.UTC()] = true
			}
		}
	}
	s.older, s.olderVersion = s.target, s.version
	s.target = t
	s.version++
}

func (s *simulation) log(format string, args ...any) {
	fmt.Fprintf(&s.trace, "%s "+format+"\n", append([]any{formatTime(s.now)}, args...)...)
}

// step simulates one random event and a reconcile.
func (s *simulation) step() {
	s.settlePods()
	switch s.random.IntN(17) {
	case 16:
		s.write()
	case 0, 1, 2:
		s.now = s.now.Add(time.Duration(s.random.IntN(120)) * time.Second)
	case 3:
		s.now = s.now.Add(time.Duration(s.random.IntN(5*3600)) * time.Second)
	case 4:
		// The clock is set, or another manager takes over, whose clock is different.
		s.now = s.now.Add(time.Duration(s.random.IntN(7200)-3600) * time.Second)
		s.clockSet = true
		s.log("the clock was set")
	case 14, 15:
		// Advance to shortly before the next tick, or to the time at which its restart is due.
		if next := s.restart.Status.NextScheduleTime; next != nil {
			s.now = next.Add(s.offset - time.Duration(s.random.IntN(3))*s.ahead/2)
		}
		if next := s.restart.Status.NextAgeTime; next != nil && next.After(s.now) && s.random.IntN(3) == 0 {
			s.now = next.Time
		}
	case 5:
		s.roll()
	case 6:
		s.disturb()
	case 7:
		s.forget()
		s.log("another manager takes over")
	case 8:
		s.ask()
	case 9:
		if s.edits {
			s.edit()
		}
	case 10:
		s.freeze()
	case 11:
		if s.first != nil {
			s.lead()
		}
	}
	s.reconcile()
}

// reconcile makes a decision with the facts that a manager sees, and carries it out. The manager
// may crash at any point.
func (s *simulation) reconcile() {
	seen, seenVersion := s.target, s.version
	if s.unsound(4) && s.version > 1 {
		seen, seenVersion = s.older, s.olderVersion
	}
	seenRestart, stale := s.restart, false
	if s.unsound(4) && (s.olderRestart.Generation != s.restart.Generation ||
		s.olderRestart.Annotations[tidekeeperv1.RestartNowAnnotation] != s.restart.Annotations[tidekeeperv1.RestartNowAnnotation]) {
		// The status is current, because the manager reads its own writes.
		seenRestart, stale = s.olderRestart.DeepCopy(), true
		seenRestart.Status = s.restart.Status
	}
	in := Input{
		Restart: seenRestart, Ticks: s.ticks, Windows: s.windows, Offset: s.offset, Target: seen, ClaimAhead: s.ahead, BeforeClaim: s.beforeClaim,
		Freezes: s.freezes, SlotAge: 10 * time.Minute, Sent: s.sent, LeadingSince: s.leading, Now: s.now, Queried: s.queries.there, Answer: s.queries.answer, Attempts: s.attempts,
	}
	if s.random.IntN(4) == 0 {
		in.Freezes = s.olderFreezes
	}
	in.Config, in.ChangeSettle = s.cachedConfig(), DefaultChangeSettle
	if s.first != nil {
		in.After = []Predecessor{{Name: "first", Restart: s.first}}
	}
	d := Decide(in)
	if d.Needs == NeedPodAges {
		in.PodAges = &PodAges{Oldest: s.pods}
		if s.unsound(4) {
			in.PodAges.Oldest = s.olderPods
		}
		if s.target == nil {
			in.PodAges.Oldest = time.Time{}
		}
		d = Decide(in)
	}
	if d.Needs == NeedLiveTarget {
		in.Live, in.Target, seenVersion = true, s.target, s.version
		d = Decide(in)
	}
	if d.Needs == NeedRolledOut {
		if !in.Live {
			panic("revisions are looked up because of a stale cache")
		}
		in.RolledOut = new(s.rolled[s.restart.Status.Active.ScheduledTime.UTC()])
		d = Decide(in)
	}
	if d.Needs == NeedPodStartups {
		if !in.Target.Rollout.Complete() {
			panic("the pods of an incomplete rollout are looked up")
		}
		in.PodStartups = make([]time.Duration, s.random.IntN(4))
		for i := range in.PodStartups {
			in.PodStartups[i] = time.Duration(s.random.IntN(60)) * time.Second
		}
		d = Decide(in)
	}
	if d.Needs == NeedPodAges {
		in.PodAges = &PodAges{Oldest: s.pods}
		d = Decide(in)
	}
	if (d.Needs == NeedSlot || d.Needs == NeedSpareSlot) && (s.sound || s.random.IntN(3) > 0) {
		in.HasSlot = true
		d = Decide(in)
	}
	d = s.askQueries(&in, s.readLive(&in, d))
	if d.Needs == NeedLiveFreezes {
		in.Freezes, in.FreezesLive = s.freezes, true
		if d = Decide(in); d.Send.IsZero() && d.Needs == NeedNothing {
			s.frozen++
		}
	}
	if d.Needs == NeedPods {
		d = s.readLive(&in, d)
	}
	s.wake = d.Wake

	if s.dies("before it writes the status") {
		return
	}
	if s.unsound(10) || stale {
		// The API server rejects the status or, if no write is needed, reports that the
		// ScheduledRestart was edited.
		s.log("the status is refused")
		return
	}
	mustBeStorable(&d.Status)
	after := s.restart.DeepCopy()
	after.Status = *d.Status.DeepCopy()
	s.restart = after
	switch {
	case d.BeforeClaim != nil:
		s.beforeClaim = d.BeforeClaim
		s.claimed++
		s.log("the tick of %s is claimed", formatTime(after.Status.Active.ScheduledTime.Time))
	case s.beforeClaim != nil && after.Status.Active == nil:
		s.beforeClaim = nil
		s.takenBack++
		s.log("the claim is taken back")
	}
	if waits := d.Status.PendingRequestTime; waits != nil {
		s.waited[waits.UTC()] = true
	}
	if reason := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady).Reason; !slices.Contains(ReadyReasons, reason) {
		panic(fmt.Sprintf("no series counts the reason %q", reason))
	}
	for _, r := range d.Records {
		if !slices.Contains(TickReasons[r.Outcome], r.Reason) {
			panic(fmt.Sprintf("no series counts ticks with outcome %s and reason %q", r.Outcome, r.Reason))
		}
		s.records = append(s.records, r)
		if r.Reason == tidekeeperv1.ReasonReverted && !s.reverted[r.ScheduledTime.UTC()] {
			panic(fmt.Sprintf("the tick of %s is recorded as reverted, but was not reverted", formatTime(r.ScheduledTime.Time)))
		}
		s.log("record: %s %s %s, earlier %d", formatTime(r.ScheduledTime.Time), r.Outcome, r.Reason, r.EarlierTicks)
	}
	if s.evictPods(&d); d.Send.IsZero() || s.dies("before it sends the tick") {
		return
	}
	s.beforeClaim = nil
	if seenVersion != s.version {
		s.log("the tick of %s is refused, as the target has changed", formatTime(d.Send))
		return
	}
	t := *s.target
	if t.RestartedAt != formatTime(d.Send) {
		s.starts[start{d.Send, s.restart.Status.Active.Trigger}]++
		s.log("the tick of %s is sent", formatTime(d.Send))
		s.check(d.Send, &t, s.restart.Status.Active.Trigger)
		if s.restart.Status.Active.Trigger == tidekeeperv1.TriggerChange {
			s.checkChange(d.Send)
		}
	}
	s.rolled[d.Send], s.before = true, s.target
	s.rolling, s.rollingContent = s.now, s.content
	t.RestartedAt, t.LastTick = formatTime(d.Send), formatTime(d.Send)
	t.Rollout = workload.Progress{Updating: true}
	s.change(&t)
	if s.dies("before it gets the response") {
		return
	}
	s.sent = d.Send
}

// unsound returns true in one of n cases, to let a failure happen. It returns false once all
// failures have ended.
func (s *simulation) unsound(n int) bool { return !s.sound && s.random.IntN(n) == 0 }

func (s *simulation) dies(when string) bool {
	if !s.unsound(8) {
		return false
	}
	s.log("the manager dies %s", when)
	s.forget()
	return true
}

// forget replaces the current manager with another manager that has no in-memory state.
func (s *simulation) forget() {
	s.sent, s.leading, s.beforeClaim, s.queries.answer, s.attempts = time.Time{}, s.now, nil, nil, Attempts{}
}
