// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// object is a ScheduledRestart in the simulation, together with its simulated state.
type object struct {
	key     types.NamespacedName
	index   int                           // in [simulation.objects]
	restart tidekeeperv1.ScheduledRestart // a copy whose status is simulated
	ticks   *schedule.Schedule
	windows schedule.Windows
	invalid error
	// target is the workload that the spec names. targetName is its kind and name.
	target     *target
	targetName string
	// own is the memory of the target, unless a ScheduledRestart that was added earlier restarts
	// the same workload. The target is stored in the object so that a decision accesses fewer
	// memory locations.
	own target

	// duration is the simulated duration of this ScheduledRestart's restarts. assumed is true if
	// the history does not contain the duration.
	duration time.Duration
	assumed  bool

	// config is the state of the ConfigMaps and Secrets that the target uses, which never changes
	// in the simulation; nil if spec.onConfigChange is not set, or if the status has no hash yet.
	config *decision.Config

	// last holds the latest history entry if decisions depend on no other entries. owned is true if
	// the history is a copy that may be modified.
	last  [1]tidekeeperv1.RestartRecord
	owned bool
	// sent is the last tick (scheduled time) that the simulated manager sent to the target.
	sent time.Time
	// wake is the time of the next decision about the ScheduledRestart; zero means never.
	wake time.Time
	// waits is true if any restart is due and has not started. scheduled is true if the next tick
	// (scheduled time) of the schedule is due.
	waits, scheduled bool
	// started is the index of the restart in progress in [Forecast.Started]; -1 if it is not
	// listed.
	started int
}

// simulation processes events one by one, and applies the effects of the manager's decisions to the
// budget, the ScheduledRestarts and the workloads.
type simulation struct {
	in      *Input
	decider decision.Decider
	// input is the input of the last decision, whose memory is reused for the next decision.
	input   decision.Input
	now     time.Time
	budget  *budget.Budget
	objects []*object // ordered by name
	byKey   map[types.NamespacedName]*object
	targets map[TargetKey]*target
	// used lists the targets in the order in which they were added.
	used   []*target
	agenda agenda
	report report
	// followers maps each ScheduledRestart to the ScheduledRestarts that name it in spec.after.
	followers map[types.NamespacedName][]*object
	// schedules holds the parsed schedules, keyed by expression and time zone.
	schedules map[[2]string]*schedule.Schedule
}

func newSimulation(in *Input) *simulation {
	return &simulation{
		in: in, now: in.Now, agenda: agenda{until: in.Until},
		budget:  budget.New(in.Limits.MaxConcurrent, in.Limits.NamespaceShare),
		byKey:   make(map[types.NamespacedName]*object, len(in.Restarts)),
		targets: make(map[TargetKey]*target, len(in.Restarts)),
		report:  newReport(in), followers: map[types.NamespacedName][]*object{}, schedules: map[[2]string]*schedule.Schedule{},
	}
}

// addAll adds the ScheduledRestarts of the input to the simulation, ordered by name.
// ScheduledRestarts with the same schedule are stored next to each other, because decisions about
// them are made at the same times, and memory access takes longer than a decision.
func (s *simulation) addAll() {
	bySchedule := slices.SortedFunc(slices.Values(s.in.Restarts), func(a, b *tidekeeperv1.ScheduledRestart) int {
		return cmp.Or(cmp.Compare(a.Spec.Schedule, b.Spec.Schedule), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	stored := make([]object, len(bySchedule))
	byName := make([]*object, len(stored))
	for i, restart := range bySchedule {
		stored[i].restart, byName[i] = *restart, &stored[i]
	}
	slices.SortFunc(byName, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.restart.Namespace, b.restart.Namespace), cmp.Compare(a.restart.Name, b.restart.Name))
	})
	for _, o := range byName {
		s.add(o)
	}
}

// add adds a ScheduledRestart to the simulation, and schedules the first decision about it. It
// ignores a ScheduledRestart that is being deleted.
func (s *simulation) add(o *object) {
	restart := &o.restart
	if !restart.DeletionTimestamp.IsZero() {
		return
	}
	o.key, o.index, o.started = types.NamespacedName{Namespace: restart.Namespace, Name: restart.Name}, len(s.objects), -1
	o.targetName = nameOf(restart.Spec.TargetRef)
	s.objects, s.byKey[o.key] = append(s.objects, o), o
	s.parse(o)
	if o.invalid != nil && s.report.shows(o) {
		s.report.Problems = append(s.report.Problems, fmt.Sprintf("%s: %s", o.key, o.invalid))
	}
	if ready := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil && ready.Reason == tidekeeperv1.ReasonClosedByQuery && s.report.shows(o) {
		s.report.ClosedByQuery++
	}
	for _, first := range restart.Spec.After {
		key := types.NamespacedName{Namespace: restart.Namespace, Name: first}
		s.followers[key] = append(s.followers[key], o)
	}
	known := false
	if o.duration, known = decision.LastDuration(restart.Status.History); !known {
		o.duration, o.assumed = s.in.AssumedDuration, true
	}
	o.config = configOf(restart)
	s.use(o, restart.Spec.TargetRef)
	active := restart.Status.Active
	if active != nil {
		if ref := decision.TargetRef(active, &restart.Spec); KeyOf(restart.Namespace, ref) != KeyOf(restart.Namespace, restart.Spec.TargetRef) {
			s.use(o, ref)
		}
		s.budget.Hold(o.key, active.StartedTime.Time)
		s.report.start(o, active)
	}
	s.agenda.wakeObject(o, s.in.Now)
}

// parse parses the schedule of a ScheduledRestart. ScheduledRestarts with equal schedules share a
// parsed schedule, which caches the results of searches for ticks.
func (s *simulation) parse(o *object) {
	spec := &o.restart.Spec
	key := [2]string{string(spec.GetSchedule()), spec.TimeZone}
	if shared := s.schedules[key]; shared != nil && len(spec.Windows) == 0 {
		o.ticks = shared
		return
	}
	o.ticks, o.windows, o.invalid = decision.ParseSchedule(spec)
	if o.ticks != nil {
		s.schedules[key] = o.ticks
	}
}

// step processes the next event: the end of a rollout, or a decision. It returns false at the end
// of the simulation.
func (s *simulation) step() bool {
	if len(s.agenda.wakeups) == 0 {
		s.report.pass(s.now, s.in.Until.Add(time.Minute)) // The last minute of the forecast ends here.
		return false
	}
	w := s.agenda.wakeups.pop()
	at := time.Unix(0, w.at).UTC()
	if w.index < 0 {
		if t := s.used[-w.index-1]; t.ends.Equal(at) {
			s.pass(at)
			t.end()
			s.changed(t)
		}
		return true
	}
	if o := s.objects[w.index]; o.wake.Equal(at) {
		s.pass(at)
		o.wake = time.Time{}
		s.reconcile(o)
	}
	return true
}

// pass advances the time of the simulation to the given time.
func (s *simulation) pass(to time.Time) {
	if !to.Equal(s.now) {
		s.report.pass(s.now, to)
		s.now = to
	}
}

// reconcile makes a decision about a ScheduledRestart and carries it out, as the manager's
// controller does.
func (s *simulation) reconcile(o *object) {
	status := &o.restart.Status
	before := status.Active
	if before != nil {
		s.budget.Hold(o.key, before.StartedTime.Time)
	}
	t := s.targetOf(o)
	in, d := s.decide(o, t, true)
	s.wakeFollowers(o, d)
	*status = d.Status
	o.keep(d.Records, len(s.followers[o.key]) > 0)

	for i := range d.Records {
		record := &d.Records[i]
		if before != nil && status.Active == nil && record.Trigger == before.Trigger && record.ScheduledTime.Equal(&before.ScheduledTime) {
			s.report.end(o, record)
		} else {
			s.report.notStarted(o, record)
		}
	}
	if before != nil && status.Active == nil && len(d.Records) == 0 {
		s.report.takeBack(o)
	}
	if before == nil && status.Active != nil {
		s.report.start(o, status.Active)
	}
	isDue := func(next *metav1.Time, offset time.Duration) bool {
		return next != nil && !next.Add(offset).After(s.now)
	}
	o.scheduled = isDue(status.NextScheduleTime, in.Offset)
	s.report.waits(o, status.Active == nil && (status.PendingRequestTime != nil || o.scheduled || isDue(status.NextAgeTime, 0) || isDue(status.NextChangeTime, 0)))

	if d.Outlived {
		s.enqueue(s.budget.Outlive(o.key))
	}
	if status.Active == nil && d.Needs != decision.NeedSlot {
		s.enqueue(s.budget.Release(o.key))
	}
	if d.Wake.Equal(s.now) {
		// The next restart was already due before this restart completed. The next decision must be
		// later than the latest history entry, so that restarts that have waited longer come first.
		d.Wake = s.now.Add(time.Second)
	}
	s.agenda.wakeObject(o, d.Wake)
	if !d.Send.IsZero() {
		o.sent = d.Send
		s.send(o, t, d.Send)
	}
	if !d.Started.IsZero() {
		// The eviction of the pods starts now. Simulate it as a rollout of the workload.
		o.sent = d.Started
		s.send(o, t, d.Started)
	}
}

// keep adds records to the history of a ScheduledRestart. If decisions depend only on the latest
// entry, it drops all earlier entries, because the histories would use most of the memory. followed
// is true if other ScheduledRestarts name this one in spec.after.
func (o *object) keep(records []tidekeeperv1.RestartRecord, followed bool) {
	history, n := &o.restart.Status.History, len(records)
	switch {
	case n == 0:
	case !decision.ReadsHistory(&o.restart.Spec) && !followed:
		o.last[0] = records[n-1]
		*history = o.last[:]
	default:
		if !o.owned {
			*history, o.owned = slices.Clone(*history), true
		}
		*history = decision.Keep(*history, records, decision.HistoryLimit(&o.restart.Spec))
	}
}

// explain computes the messages that explain why ScheduledRestarts wait. It is called only at the
// end, since the simulation does not need the messages.
func (s *simulation) explain() {
	for _, o := range s.objects {
		if o.waits {
			_, d := s.decide(o, s.targetOf(o), false)
			o.restart.Status.Conditions = d.Status.Conditions
		}
	}
}

// decide provides the facts that a decision about a ScheduledRestart needs, and returns the
// decision and its input. Both are valid until the next call.
func (s *simulation) decide(o *object, t *target, brief bool) (*decision.Input, *decision.Output) {
	in := &s.input
	*in = decision.Input{
		Restart: &o.restart, Ticks: o.ticks, Windows: o.windows, Invalid: o.invalid, Offset: decision.Offset(&o.restart, s.now),
		Freezes: s.in.Freezes[o.key.Namespace], FreezesLive: true,
		Target: t.State, Live: true, Unserved: t.Unserved, RolledOut: &neverRolledOut, PodStartups: noPodStartups,
		Config: o.config, ChangeSettle: decision.DefaultChangeSettle, SlotAge: s.in.Limits.SlotAge, Sent: o.sent,
		LeadingSince: s.in.LeadingSince, Now: s.now, Brief: brief,
	}
	s.order(o, in)
	for {
		d := s.decider.Decide(in)
		switch d.Needs {
		case decision.NeedPodAges, decision.NeedLivePodAges:
			in.PodAges = &decision.PodAges{Oldest: o.oldest(t), Live: true}
		case decision.NeedPods:
			in.Pods = s.pods(o, t)
		case decision.NeedSlot:
			in.HasSlot = s.budget.Take(o.key, d.WaitingSince)
		}
		if d.Needs == decision.NeedNothing || d.Needs == decision.NeedSlot && !in.HasSlot {
			return in, d
		}
	}
}

// A simulated rollout is never rolled back, and the startup times of its pods are unknown.
var (
	neverRolledOut bool
	noPodStartups  = []time.Duration{}
)

// enqueue schedules decisions about the given ScheduledRestarts at the current time.
func (s *simulation) enqueue(keys []types.NamespacedName) {
	for _, key := range keys {
		s.agenda.wakeObject(s.byKey[key], s.now)
	}
}
