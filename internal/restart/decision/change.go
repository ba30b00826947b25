// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/podconfig"
)

// Config is what is known of the ConfigMaps and Secrets that count for onConfigChange.
type Config struct {
	// Hash is that of their content; "" if it is not known yet.
	Hash string
	// Changed is when the content changed last, or later.
	Changed time.Time
	// Restless is since when one change has followed the other before the content had settled; zero
	// if the last one followed none. Source is the object that changed last.
	Restless time.Time
	Source   Source
	// Problem is why nothing is known of them, and Message says it; "" if there is none.
	Problem, Message string
	// Live says that they were read from the API server and not from the cache.
	Live bool
}

// DefaultChangeSettle is the default of Input.ChangeSettle.
const DefaultChangeSettle = 10 * time.Second

// configRetry is when to decide again if nothing is known yet.
const configRetry = time.Second

// observeChange finds out whether a restart is due because the content of ConfigMaps or Secrets
// changed. It returns false if that needs a look at the pods, or at the API server.
//
// status.configHash is the hash of the content that the pods were started with. All else
// follows from comparing it with that of the content now, so that there is nothing that a
// manager could forget or do twice.
func (d *decider) observeChange() bool {
	status, c := &d.out.Status, d.in.Config
	switch {
	case d.spec.OnConfigChange == "":
		status.ConfigHash, status.NextChangeTime, status.LastChangeTime = "", nil, nil
		d.endDelays()
		return true
	case !d.followsConfig():
		status.NextChangeTime = nil
		d.endDelays()
		return true
	case c.Hash == "":
		d.wakeAt(d.in.Now.Add(configRetry))
		return true
	case !podconfig.SameScope(status.ConfigHash, c.Hash) && !c.Live:
		d.out.Needs = NeedLiveConfig
		return false
	case !podconfig.SameScope(status.ConfigHash, c.Hash):
		// At first sight, whatever has changed before.
		status.ConfigHash, status.NextChangeTime = c.Hash, nil
		return true
	case status.ConfigHash == c.Hash:
		return d.observeChangeBack()
	}
	tick := d.changeTick()
	if status.NextChangeTime == nil && d.intervalEnds().After(d.in.Now) {
		// It is known when it is due, even if the content never settles until then.
		if !c.Live {
			d.out.Needs = NeedLiveConfig
			return false
		}
		d.noteChange(tick)
	}
	if tick.After(d.in.Now) {
		d.wakeAt(tick)
		return true
	}
	switch {
	case d.blocked(tidekeeperv1.ReasonTargetRolling):
		// Its pods are being replaced, and change all the time.
	case d.in.PodAges == nil:
		d.out.Needs = NeedPodAges
		return false
	case d.in.PodAges.Oldest.IsZero() && d.in.Target.Pods > 0 && !d.in.PodAges.Live:
		d.out.Needs = NeedLivePodAges
		return false
	case d.podsAreNewer() && !c.Live:
		// The cache of a manager that has just begun may be older than the status.
		d.out.Needs = NeedLiveConfig
		return false
	case d.podsAreNewer():
		if !d.skipChange(tidekeeperv1.ReasonAlreadyRestarted, "all pods were started after the change") {
			return false
		}
		status.ConfigHash = c.Hash
		return true
	}
	if status.NextChangeTime == nil && !c.Live {
		// The cache of a manager that has just begun may show a change that is taken back.
		d.out.Needs = NeedLiveConfig
		return false
	}
	due, _ := d.times(tick, tidekeeperv1.TriggerChange)
	if status.NextChangeTime == nil {
		d.noteChange(tick)
	}
	if due.After(d.in.Now) {
		d.wakeAt(due)
	} else {
		d.changed = &candidate{tick: tick, trigger: tidekeeperv1.TriggerChange, first: tick}
	}
	return true
}

// observeChangeBack ends the wait for a restart when the content is again what the pods were started
// with, and has settled, so that a content that changes back and forth is not a write each time. It
// returns false if that needs a look at the API server.
func (d *decider) observeChangeBack() bool {
	d.observeQuiet()
	if ends := d.burstEnds(); d.out.Status.NextChangeTime != nil && ends.After(d.in.Now) {
		d.wakeAt(ends)
		return true
	}
	return d.skipChange(tidekeeperv1.ReasonWithdrawn, "the content is again what the pods were started with")
}

// followsConfig reports whether a change of the content is to restart the target, and can.
func (d *decider) followsConfig() bool {
	t := d.in.Target
	return d.spec.OnConfigChange != "" && d.stopped() == "" && t != nil && !t.Deleting && !d.in.Polled &&
		(evicts(d.spec) || !t.OnDelete && !t.Partitioned) && d.in.Config != nil && d.in.Config.Problem == ""
}

// changeTick returns the tick of the restart for a change. It is after those that the target
// was restarted for, of which none was started with the new content: otherwise the restart
// would seem to have been done.
func (d *decider) changeTick() time.Time {
	tick := d.settled()
	for _, mark := range []string{d.in.Target.RestartedAt, d.in.Target.LastTick} {
		if at, ok := parseTime(mark); ok && !at.After(d.in.Now.Add(clockSkew)) {
			tick = later(tick, at.UTC().Truncate(time.Second).Add(time.Second))
		}
	}
	return tick
}

// settled returns when no edit has followed the last one for long enough. If one follows the other
// all the time, that is when they have done so for minIntervalSeconds.
func (d *decider) settled() time.Time {
	settled := d.burstEnds()
	if restless := d.in.Config.Restless; !restless.IsZero() {
		longest := max(d.spec.GetMinInterval(), d.in.ChangeSettle)
		if at := later(restless.UTC().Truncate(time.Second).Add(longest), d.intervalEnds()); at.Before(settled) {
			return at
		}
	}
	return settled
}

// burstEnds returns when no edit has followed the last one for long enough, however long that takes.
func (d *decider) burstEnds() time.Time {
	return d.in.Config.Changed.UTC().Truncate(time.Second).Add(d.in.ChangeSettle)
}

// podsAreNewer reports whether all pods were created after the content changed, so that they
// were started with it. Those of the very second count as older.
func (d *decider) podsAreNewer() bool {
	oldest := d.in.PodAges.Oldest
	return oldest.IsZero() || oldest.After(d.in.Config.Changed)
}

// skipChange ends the wait for a restart that has nothing to do any more. If it was due, that is
// recorded. It returns false if that needs a look at the API server, as the cache may be older
// than the one that has shown the change.
func (d *decider) skipChange(reason, message string) bool {
	next := d.out.Status.NextChangeTime
	switch {
	case next == nil || next.After(d.in.Now):
		d.out.Status.NextChangeTime = nil
		return true
	case !d.in.Config.Live:
		d.out.Needs = NeedLiveConfig
		return false
	}
	d.out.Status.NextChangeTime = nil
	d.record(tidekeeperv1.RestartRecord{
		ScheduledTime: *next, Trigger: tidekeeperv1.TriggerChange, ConfigHash: d.in.Config.Hash,
		Outcome: tidekeeperv1.OutcomeSkipped, Reason: reason, Message: message,
	})
	return true
}

// noteConfig notes in the restart in progress what content its pods start with, whatever has
// triggered it.
func (d *decider) noteConfig() {
	d.out.Status.NextChangeTime = nil
	if d.followsConfig() {
		d.out.Status.Active.ConfigHash = d.in.Config.Hash
	}
}

// serveChange notes that a restart was sent and has ended, so that the pods have its content:
// if that fails, the same content is not tried again. Of a workload that was deleted or is not
// the target any more, it says nothing about the next one.
func (d *decider) serveChange(active *tidekeeperv1.ActiveRestart, reason string) {
	if active.ConfigHash != "" && podconfig.SameScope(active.ConfigHash, d.out.Status.ConfigHash) &&
		reason != tidekeeperv1.ReasonTargetNotFound && TargetRef(active, d.spec).Equal(d.spec.TargetRef) {
		d.out.Status.ConfigHash = active.ConfigHash
	}
}

// sendForChange sends a tick of the trigger Change that was started but not sent, if it still
// can and has to be. Otherwise the start is taken back without a record: nothing has happened,
// and a change that is left to serve is.
func (d *decider) sendForChange(tick time.Time) {
	active, c := d.out.Status.Active, d.in.Config
	due, _ := d.times(tick, active.Trigger)
	switch {
	case !d.followsConfig() || !TargetRef(active, d.spec).Equal(d.spec.TargetRef) || d.in.Now.Before(due) || d.blocker(d.in.Now) != nil:
		d.out.Status.Active = nil
	case !d.takeSlot(active):
		d.out.Status.Active = nil
	case !c.Live:
		d.out.Needs = NeedLiveConfig
	case c.Hash != active.ConfigHash || d.in.Now.Before(d.settled()):
		// Changed since, even if it was changed back: that restart has a time of its own.
		d.out.Status.Active = nil
	case d.in.PodAges == nil || !d.in.PodAges.Live:
		d.out.Needs = NeedLivePodAges
	case d.podsAreNewer():
		d.out.Status.Active = nil
	default:
		d.sendLate(tick, due)
	}
}

// needsLive reports whether a restart for a reason that is in the cache needs a look at the API
// server: the cache may not show yet that the pods were replaced, or that the change was taken
// back.
func (d *decider) needsLive(trigger tidekeeperv1.Trigger) bool {
	switch {
	case trigger == tidekeeperv1.TriggerChange && !d.in.Config.Live:
		d.out.Needs = NeedLiveConfig
	case (trigger == tidekeeperv1.TriggerChange || trigger == tidekeeperv1.TriggerAge) && (d.in.PodAges == nil || !d.in.PodAges.Live):
		d.out.Needs = NeedLivePodAges
	default:
		return false
	}
	return true
}

// changeMessage says what a change of the content will trigger, or "".
func (d *decider) changeMessage() string {
	objects := "ConfigMaps"
	switch d.spec.OnConfigChange {
	case "":
		return ""
	case tidekeeperv1.ConfigMapsAndSecrets:
		objects = "ConfigMaps and Secrets"
	}
	message := fmt.Sprintf("it is restarted when the %s that its pods use change", objects)
	if next := d.out.Status.NextChangeTime; next != nil {
		message = fmt.Sprintf("the content of the %s that its pods use has changed, so that a restart is due at %s", objects, formatTime(next.Time))
		if next.Time.Equal(d.intervalEnds()) {
			message += fmt.Sprintf(", %s after the last one for a change", d.spec.GetMinInterval())
		}
	}
	if d.stormy() {
		message += "; changes keep coming, see the condition " + tidekeeperv1.ConditionRestartStorm
	}
	return message
}

// triggersMessage says what will trigger restarts beside the schedule, or "".
func (d *decider) triggersMessage() string {
	age, change := d.ageMessage(), d.changeMessage()
	if age != "" && change != "" {
		return age + "; " + change
	}
	return age + change
}

// ChangePending reports whether a ScheduledRestart has a change to restart for that its status
// does not show yet: neither when it is due nor that it is served. hash is that of the content now;
// "" if it is not known.
func ChangePending(restart *tidekeeperv1.ScheduledRestart, hash string) bool {
	status := &restart.Status
	return restart.Spec.OnConfigChange != "" && !restart.Spec.Suspend && status.ConsecutiveFailures < restart.Spec.FailureLimit && status.Active == nil && status.NextChangeTime == nil &&
		podconfig.SameScope(status.ConfigHash, hash) && status.ConfigHash != hash
}
