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

// object is a ScheduledRestart during the simulation.
type object struct {
	key     types.NamespacedName
	order   int
	restart *tidekeeperv1.ScheduledRestart
	ticks   *schedule.Schedule
	windows schedule.Windows
	invalid error
	// target is the target of the spec.
	target *target

	// duration is how long its restarts take, and assumed says that this is not known.
	duration time.Duration
	assumed  bool

	// config is the content that counts for onConfigChange, which stays as it is now; nil if none
	// does.
	config *decision.Config

	// sent is the tick that was sent last.
	sent time.Time
	// wake is when to decide about it again; zero means never.
	wake time.Time
	// waits says that a tick is due and not decided, and scheduled that a tick of the schedule is.
	waits, scheduled bool
	// started is where the report has the restart in progress, -1 if it is not listed.
	started int
}

// simulation does to a budget, to objects and to workloads the same as the manager's controller of
// ScheduledRestarts does, from event to event.
type simulation struct {
	in      *Input
	decider decision.Decider
	now     time.Time
	budget  *budget.Budget
	objects []*object
	byKey   map[types.NamespacedName]*object
	targets map[TargetKey]*target
	agenda  agenda
	report  report
	// followers are the objects that come after others, by the keys of these.
	followers map[types.NamespacedName][]*object
	// schedules are the parsed schedules, by expression and time zone.
	schedules map[[2]string]*schedule.Schedule
}

func newSimulation(in *Input) *simulation {
	slices.SortFunc(in.Restarts, func(a, b *tidekeeperv1.ScheduledRestart) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return &simulation{
		in: in, now: in.Now, agenda: agenda{until: in.Until},
		budget:  budget.New(in.Limits.MaxConcurrent, in.Limits.NamespaceShare),
		byKey:   make(map[types.NamespacedName]*object, len(in.Restarts)),
		targets: make(map[TargetKey]*target, len(in.Restarts)),
		report:  newReport(in), followers: map[types.NamespacedName][]*object{}, schedules: map[[2]string]*schedule.Schedule{},
	}
}

// add takes in a ScheduledRestart, which is decided about first of all. An object that is being
// deleted is not restarted any more.
func (s *simulation) add(restart *tidekeeperv1.ScheduledRestart) {
	if !restart.DeletionTimestamp.IsZero() {
		return
	}
	o := &object{
		key: types.NamespacedName{Namespace: restart.Namespace, Name: restart.Name}, order: len(s.objects), restart: restart, started: -1,
	}
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
	// The records of the forecast are put into it.
	restart.Status.History = slices.Clone(restart.Status.History)
	o.config = configOf(restart)
	s.objects, s.byKey[o.key] = append(s.objects, o), o
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

// parse parses the schedule of an object. Objects with the same schedule share it, and what it has
// found last.
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

// step plays the next event, and returns false at the end.
func (s *simulation) step() bool {
	w, ok := s.agenda.next()
	if !ok {
		s.report.pass(s.now, s.in.Until.Add(time.Minute)) // The last minute ends here.
		return false
	}
	if at := time.Unix(0, w.at).UTC(); !at.Equal(s.now) {
		s.report.pass(s.now, at)
		s.now = at
	}
	if w.target != nil {
		s.complete(w.target)
		return true
	}
	w.object.wake = time.Time{}
	s.reconcile(w.object)
	return true
}

// reconcile decides about an object and carries the decision out, as the controller's
// Reconcile does.
func (s *simulation) reconcile(o *object) {
	status := &o.restart.Status
	before := status.Active
	if before != nil {
		s.budget.Hold(o.key, before.StartedTime.Time)
	}
	t := s.targetOf(o)
	in, d := s.decide(o, t, true)
	s.wakeFollowers(o, &d)
	*status = d.Status
	status.History = decision.Keep(status.History, d.Records, decision.HistoryLimit(&o.restart.Spec))

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
		// The next tick is due when the restart completes. It comes after those that have
		// waited longer, which takes a later time than that of the last record.
		d.Wake = s.now.Add(time.Second)
	}
	s.agenda.wakeObject(o, d.Wake)
	if !d.Send.IsZero() {
		o.sent = d.Send
		s.send(o, t, d.Send)
	}
	if !d.Started.IsZero() {
		// Its pods are replaced from now on, whether it evicts them or not.
		o.sent = d.Started
		s.send(o, t, d.Started)
	}
}

// explain has the status of each object that waits say for what: while the time is played, no one
// reads that.
func (s *simulation) explain() {
	for _, o := range s.objects {
		if o.waits {
			_, d := s.decide(o, s.targetOf(o), false)
			o.restart.Status.Conditions = d.Status.Conditions
		}
	}
}

// decide decides about an object. It also returns the input of the decision.
func (s *simulation) decide(o *object, t *target, brief bool) (decision.Input, decision.Output) {
	in := decision.Input{
		Restart: o.restart, Ticks: o.ticks, Windows: o.windows, Invalid: o.invalid, Offset: decision.Offset(o.restart, s.now),
		Freezes: s.in.Freezes[o.key.Namespace], FreezesLive: true,
		Target: t.State, Unserved: t.Unserved, Config: o.config, ChangeSettle: decision.DefaultChangeSettle, SlotAge: s.in.Limits.SlotAge, Sent: o.sent, Now: s.now, Brief: brief,
	}
	s.order(o, &in)
	for {
		d := s.decider.Decide(in)
		switch d.Needs {
		case decision.NeedLiveTarget:
			in.Live = true
		case decision.NeedRolledOut:
			in.RolledOut = new(false)
		case decision.NeedPodStartups:
			in.PodStartups = []time.Duration{}
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

// enqueue has objects decided about now.
func (s *simulation) enqueue(keys []types.NamespacedName) {
	for _, key := range keys {
		s.agenda.wakeObject(s.byKey[key], s.now)
	}
}
