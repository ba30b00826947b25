// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// roll completes a rollout in progress, or lets it fail.
func (s *simulation) roll() {
	if s.target == nil || s.target.Rollout.Complete() {
		return
	}
	t := *s.target
	t.Rollout = workload.Progress{Available: true}
	if s.unsound(5) {
		t.Rollout = workload.Progress{Exceeded: true, Message: "it is broken"}
	} else if s.target.Rollout.Updating {
		s.olderPods, s.pods, s.podsContent = s.pods, s.rolling, s.rollingContent
		s.replaceAll(s.rolling, s.rollingContent)
	}
	s.change(&t)
	s.log("the target becomes %+v", t.Rollout)
}

// ask requests a restart at a random time, or withdraws the request. Requested times are never
// whole minutes, so that they differ from ticks of the schedule.
func (s *simulation) ask() {
	value := ""
	if s.random.IntN(4) > 0 {
		at := s.now.Add(time.Duration(s.random.IntN(3*3600)-2*3600) * time.Second).Truncate(time.Minute)
		value = formatTime(at.Add(time.Duration(1+s.random.IntN(59)) * time.Second))
		if s.starts[start{parsed(value), tidekeeperv1.TriggerRequest}] > 0 || s.waited[parsed(value)] {
			return
		}
		if s.random.IntN(10) == 0 {
			value = "0000-01-01T00:00:00+23:59"
		}
	}
	after := s.restart.DeepCopy()
	after.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: value}
	s.olderRestart, s.restart = s.restart, after
	s.log("a restart is requested for %q", value)
}

// lead gives the predecessor a random state: due, in progress, idle, or failed.
func (s *simulation) lead() {
	at := metav1.Time{Time: s.now.Add(time.Duration(s.random.IntN(7200)-3600) * time.Second).Truncate(time.Second)}
	s.first = &tidekeeperv1.ScheduledRestart{}
	switch status := &s.first.Status; s.random.IntN(6) {
	case 0:
		status.NextScheduleTime = &at
	case 1:
		status.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: at}
	case 2:
		status.History = []tidekeeperv1.RestartRecord{{ScheduledTime: at, StartedTime: &at, Outcome: tidekeeperv1.OutcomeFailed}}
	}
	s.log("the first one is %+v", s.first.Status)
}

// freeze creates a freeze, or lifts all freezes.
func (s *simulation) freeze() {
	s.olderFreezes = s.freezes
	s.freezes = nil
	if len(s.olderFreezes) == 0 || s.random.IntN(4) == 0 {
		from := s.now.Add(time.Duration(s.random.IntN(7200)-3600) * time.Second)
		s.freezes = append(slices.Clone(s.olderFreezes), period.Period{Name: "f", Reason: "r", From: from, Until: from.Add(time.Duration(1+s.random.IntN(4*3600)) * time.Second)})
	}
	s.log("the freezes are %v", s.freezes)
}

// drawAge returns a random maximum age of pods in seconds.
func (s *simulation) drawAge() int32 { return int32(300 + s.random.IntN(2*24*3600)) }

// drawWindows returns one or two random windows.
func (s *simulation) drawWindows() (all schedule.Windows) {
	for range 1 + s.random.IntN(2) {
		all = append(all, schedule.Window{
			Opens:  simulatedSchedules[s.random.IntN(len(simulatedSchedules))],
			Length: time.Duration(1+s.random.IntN(360)) * time.Minute,
		})
	}
	return all
}

// counted returns the effective ticks of the schedule, for which a window is open before their
// deadline.
func (s *simulation) counted() schedule.Ticks {
	return schedule.Ticks{Schedule: s.ticks, Windows: s.windows, Offset: s.offset, Deadline: seconds(s.restart.Spec.StartingDeadlineSeconds)}
}

func parsed(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC()
}

// edit changes a random field of the spec.
func (s *simulation) edit() {
	after := s.restart.DeepCopy()
	after.Generation++
	if s.editMethod(after) {
		return
	}
	kinds := 5
	if s.windows != nil {
		kinds = 6
	}
	switch s.random.IntN(kinds) {
	case 5:
		s.windows = s.drawWindows()
		s.log("the windows are edited")
	case 4:
		after.Spec.MaxPodAgeSeconds = s.drawAge()
		if s.random.IntN(3) == 0 && s.ticks != nil {
			after.Spec.MaxPodAgeSeconds = 0
		}
		s.log("the age becomes %d s", after.Spec.MaxPodAgeSeconds)
	case 0, 1:
		s.ticks = simulatedSchedules[s.random.IntN(len(simulatedSchedules))]
		s.log("the schedule becomes %s", s.ticks)
	case 2:
		after.Spec.Suspend = !after.Spec.Suspend
		s.log("suspend becomes %v", after.Spec.Suspend)
	case 3:
		after.Spec.StartingDeadlineSeconds = int32(60 + s.random.IntN(3600))
		s.log("the deadline becomes %d s", after.Spec.StartingDeadlineSeconds)
	}
	s.olderRestart, s.restart = s.restart, after
}

// undo simulates kubectl rollout undo for a Deployment, which reverts the workload's pod template
// and annotations.
func (s *simulation) undo() {
	if s.before == nil {
		return
	}
	for _, mark := range []string{s.target.RestartedAt, s.target.LastTick} {
		s.reverted[parsed(mark)] = true
	}
	t := *s.target
	t.RestartedAt, t.LastTick = s.before.RestartedAt, s.before.LastTick
	s.rolling, s.rollingContent = s.now, s.content
	t.Rollout = workload.Progress{Updating: true}
	s.before = nil
	s.change(&t)
	s.log("the last rollout is undone")
}

// disturb makes a random change to the target.
func (s *simulation) disturb() {
	if s.target == nil {
		s.create()
		s.log("the target exists again")
		return
	}
	t := *s.target
	switch s.random.IntN(8) {
	case 6:
		// Another client, whose clock is ahead, restarts the target.
		s.before = s.target
		s.rolling, s.rollingContent = s.now, s.content
		t.RestartedAt = formatTime(s.offMinute(time.Duration(s.random.IntN(240)) * time.Second))
		t.Rollout = workload.Progress{Updating: true}
	case 7:
		s.undo()
		return
	case 0:
		t.Paused = !t.Paused
	case 1:
		t.Rollout.Available = !t.Rollout.Available
	case 2:
		s.before = s.target
		s.rolling, s.rollingContent = s.now, s.content
		t.RestartedAt = formatTime(s.offMinute(0))
		t.Rollout = workload.Progress{Updating: true}
	case 3:
		s.change(nil)
		s.log("the target is deleted")
		return
	case 4:
		t.RestartedAt = formatTime(s.offMinute(24 * time.Hour)) // a time in the future
	case 5:
		t.RestartedAt = "yesterday"
	}
	s.change(&t)
	s.log("the target is %+v", t)
}

// offMinute returns the current time plus the given duration, adjusted so that it is not a tick: a
// restart by another client in the same second as a tick would look like the restart for that tick.
func (s *simulation) offMinute(after time.Duration) time.Time {
	at := s.now.Add(after)
	second, status := at.Truncate(time.Second), &s.restart.Status
	if at.Truncate(time.Minute).Equal(second) || status.NextAgeTime != nil && status.NextAgeTime.Time.Equal(second) ||
		status.NextChangeTime != nil && status.NextChangeTime.Time.Equal(second) ||
		status.Active != nil && status.Active.ScheduledTime.Time.Equal(second) {
		return at.Add(time.Second)
	}
	return at
}

// staysYoung ends all failures, and panics if a pod becomes too old afterwards. The manager is
// woken only at the wake-up times of its decisions.
func (s *simulation) staysYoung() {
	s.sound = true
	after := s.restart.DeepCopy()
	after.Generation++
	after.Annotations, after.Spec.Suspend = nil, false
	if after.Spec.MaxPodAgeSeconds == 0 {
		return
	}
	s.restart, s.olderRestart, s.windows, s.freezes, s.olderFreezes = after, after, nil, nil, nil
	if s.first != nil {
		s.first = &tidekeeperv1.ScheduledRestart{} // The predecessor has no due restart.
	}
	s.create()
	s.starts = map[start]int{} // The previous starts were for another workload.
	limit := after.Spec.GetMaxPodAge()
	allowed := limit + 2*time.Minute
	// The clock may have been set back since the last restart.
	if last := after.Status.LastAgeTime; last != nil && last.After(s.now) {
		allowed += last.Sub(s.now)
	}
	if active := after.Status.Active; active != nil && later(active.StartedTime.Time, active.ScheduledTime.Time).After(s.now) {
		allowed += later(active.StartedTime.Time, active.ScheduledTime.Time).Sub(s.now)
	}
	for end := s.now.Add(3 * limit); s.now.Before(end); {
		s.reconcile()
		switch {
		case s.target.Rollout.Updating:
			s.now = s.now.Add(time.Minute)
			s.roll()
		case s.wake.IsZero():
			panic("nothing wakes the manager before a pod becomes too old")
		case s.wake.After(s.now):
			s.now = s.wake
		}
		if age := s.now.Sub(s.pods); age > allowed {
			panic(fmt.Sprintf("a pod is %s old; the limit is %s", age, limit))
		}
	}
}

// questions is the state of the simulated Prometheus queries.
type questions struct {
	// there is true if queries are configured. asked is the time at which they were last run.
	// closed is true if a query returned results then.
	there, closed bool
	asked         time.Time
	// answer is the last answer that the current manager remembers.
	answer *Answer
	// heldBack counts the ticks that the queries have held back.
	heldBack int
}

// askQueries answers the queries if a decision needs the answer, and repeats the decision.
func (s *simulation) askQueries(in *Input, d Output) Output {
	if d.Needs != NeedAnswer {
		return d
	}
	q := &s.queries
	q.asked, q.closed, q.answer = s.now, s.unsound(3), &Answer{At: s.now}
	if q.closed {
		q.answer.Closed = "closed by query alerts: Down"
	}
	s.log("the queries are asked, and close: %t", q.closed)
	in.Answer = q.answer
	if d = Decide(*in); d.Send.IsZero() && d.Needs == NeedNothing {
		q.heldBack++
	}
	return d
}
