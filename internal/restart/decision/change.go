// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// Config is the known content of the ConfigMaps and Secrets that count for onConfigChange.
type Config struct {
	// Hash is that of their content; "" if it is not known yet.
	Hash string
	// Changed is when the content changed last, or later.
	Changed time.Time
	// Restless is since when changes have followed each other before the content had settled; zero
	// if the last change followed none. Source is the object that changed last.
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

// began returns when the changes began of which each followed the change before it too soon.
func (c *Config) began() time.Time {
	if c.Restless.IsZero() {
		return c.Changed
	}
	return c.Restless
}

// burstEnds returns when no edit has followed the last edit for the given duration.
func (c *Config) burstEnds(settle time.Duration) time.Time {
	return c.Changed.UTC().Truncate(time.Second).Add(settle)
}

// changeTrigger restarts workloads when the content of the ConfigMaps and Secrets that they use changes.
//
// status.configHash is the hash of the content that the pods were started with. All else
// follows from comparing it with the hash of the content now, so that there is nothing that a
// manager could forget or do twice.
type changeTrigger struct {
	state    *state
	windows  schedule.Windows
	interval *interval
	// config, settle and ages are Config, ChangeSettle and PodAges of the input.
	config  *Config
	settle  time.Duration
	ages    *PodAges
	history *history
	wake    *alarm
	// changed is the tick, if it is due.
	changed *candidate
}

// times returns when the restart for a change is due: later by the place of the object, and not before
// the interval has ended. A change that follows a waiting change does not have it wait for longer, but
// for the end of the burst. A restart that is started is due.
func (t *changeTrigger) times(tick time.Time) (due, deadline time.Time) {
	status := t.state.status
	due = later(tick.Add(place(t.state.restart)), t.interval.ends())
	active := status.Active
	switch next := status.NextChangeTime; {
	case active != nil && active.Trigger == tidekeeperv1.TriggerChange && active.StartedTime.Time.Before(due):
		due = active.StartedTime.UTC()
	case active == nil && next != nil && next.Time.Before(due):
		due = later(tick, next.UTC())
	}
	return opensAt(t.windows, due), time.Time{}
}

func (t *changeTrigger) candidate() *candidate { return t.changed }

func (t *changeTrigger) confirm() Need {
	switch {
	case !t.config.Live:
		return NeedLiveConfig
	case t.ages == nil || !t.ages.Live:
		return NeedLivePodAges
	default:
		return NeedNothing
	}
}

// pass has nothing to do: the content of the pods says whether a restart is due.
func (t *changeTrigger) pass(*candidate) {}

// edited takes in an edit of the spec.
func (t *changeTrigger) edited(retargeted bool) {
	t.state.status.NextChangeTime = nil
	t.interval.reset()
	if retargeted {
		t.state.status.ConfigHash = ""
		t.interval.forget()
	}
}

// observe finds out whether a restart is due because the content changed. It returns the fact that
// this depends on. rolling says that the pods are being replaced.
func (t *changeTrigger) observe(rolling bool) Need {
	status, c := t.state.status, t.config
	switch {
	case t.state.spec.OnConfigChange == "":
		status.ConfigHash, status.NextChangeTime = "", nil
		t.interval.forget()
		t.interval.reset()
		return NeedNothing
	case !t.possible():
		status.NextChangeTime = nil
		t.interval.reset()
		return NeedNothing
	case c.Hash == "":
		t.wake.set(t.state.now.Add(configRetry))
		return NeedNothing
	case !podconfig.SameScope(status.ConfigHash, c.Hash) && !c.Live:
		return NeedLiveConfig
	case !podconfig.SameScope(status.ConfigHash, c.Hash):
		// At first sight, whatever has changed before.
		status.ConfigHash, status.NextChangeTime = c.Hash, nil
		return NeedNothing
	case status.ConfigHash == c.Hash:
		return t.observeBack()
	default:
		return t.observeChanged(rolling)
	}
}

// observeChanged finds out when the restart for new content is due: content that the pods were not
// started with.
func (t *changeTrigger) observeChanged(rolling bool) Need {
	status, now := t.state.status, t.state.now
	tick := t.tick()
	if status.NextChangeTime == nil && t.interval.ends().After(now) {
		// It is known when it is due, even if the content never settles until then.
		if !t.config.Live {
			return NeedLiveConfig
		}
		t.note(tick)
	}
	if tick.After(now) {
		t.wake.set(tick)
		return NeedNothing
	}
	// The pods change all the time while they are being replaced.
	if !rolling {
		if done, need := t.observePods(); done || need != NeedNothing {
			return need
		}
	}
	if status.NextChangeTime == nil && !t.config.Live {
		// The cache of a manager that has just begun may show a change that is taken back.
		return NeedLiveConfig
	}
	c := newCandidate(t, tidekeeperv1.TriggerChange, tick)
	if status.NextChangeTime == nil {
		t.note(tick)
	}
	if c.due.After(now) {
		t.wake.set(c.due)
	} else {
		t.changed = c
	}
	return NeedNothing
}

// observePods finds out whether all pods were started with the content already, so that no restart is
// needed.
func (t *changeTrigger) observePods() (done bool, need Need) {
	switch {
	case t.ages == nil:
		return false, NeedPodAges
	case t.ages.Oldest.IsZero() && t.state.target.Pods > 0 && !t.ages.Live:
		return false, NeedLivePodAges
	case !t.podsAreNewer():
		return false, NeedNothing
	case !t.config.Live:
		// The cache of a manager that has just begun may be older than the status.
		return false, NeedLiveConfig
	}
	if need := t.skip(tidekeeperv1.ReasonAlreadyRestarted, "all pods were started after the change"); need != NeedNothing {
		return false, need
	}
	t.state.status.ConfigHash = t.config.Hash
	return true, NeedNothing
}

// observeBack ends the wait for a restart when the content is again the content that the pods were
// started with, and has settled, so that a content that changes back and forth is not a write each time.
func (t *changeTrigger) observeBack() Need {
	t.interval.settle(t.config.Changed, t.wake)
	if ends := t.config.burstEnds(t.settle); t.state.status.NextChangeTime != nil && ends.After(t.state.now) {
		t.wake.set(ends)
		return NeedNothing
	}
	return t.skip(tidekeeperv1.ReasonWithdrawn, "the content is again what the pods were started with")
}

// skip ends the wait for a restart that has nothing to do any more. If it was due, that is
// recorded, after a look at the API server: the cache may be older than the cache that has shown the
// change.
func (t *changeTrigger) skip(reason, message string) Need {
	status := t.state.status
	next := status.NextChangeTime
	if next != nil && !next.After(t.state.now) {
		if !t.config.Live {
			return NeedLiveConfig
		}
		t.history.record(tidekeeperv1.RestartRecord{
			ScheduledTime: *next, Trigger: tidekeeperv1.TriggerChange, ConfigHash: t.config.Hash,
			Outcome: tidekeeperv1.OutcomeSkipped, Reason: reason, Message: message,
		})
	}
	status.NextChangeTime = nil
	return NeedNothing
}

// possible reports whether a change of the content is to restart the target, and can.
func (t *changeTrigger) possible() bool {
	return t.state.spec.OnConfigChange != "" && t.state.replacesPods() && t.config != nil && t.config.Problem == ""
}

// lasts reports whether the content is still the content of the restart in progress. After any other
// change, even if that was changed back, a restart has a time of its own.
func (t *changeTrigger) lasts(active *tidekeeperv1.ActiveRestart) (bool, Need) {
	switch {
	case !t.config.Live:
		return false, NeedLiveConfig
	case t.config.Hash != active.ConfigHash || t.state.now.Before(t.settled()):
		return false, NeedNothing
	case t.ages == nil || !t.ages.Live:
		return false, NeedLivePodAges
	default:
		return !t.podsAreNewer(), NeedNothing
	}
}

// tick returns the tick of the restart for a change. It is after the ticks that the target
// was restarted for, of which none was started with the new content: otherwise the restart
// would seem to have been done.
func (t *changeTrigger) tick() time.Time {
	tick := t.settled()
	for _, at := range marks(t.state.target, t.state.now) {
		tick = later(tick, at.Truncate(time.Second).Add(time.Second))
	}
	return tick
}

// settled returns when no edit has followed the last edit for long enough. If edits follow each other
// all the time, that is when they have done so for minIntervalSeconds.
func (t *changeTrigger) settled() time.Time {
	settled := t.config.burstEnds(t.settle)
	if restless := t.config.Restless; !restless.IsZero() {
		longest := max(t.state.spec.GetMinInterval(), t.settle)
		if at := later(restless.UTC().Truncate(time.Second).Add(longest), t.interval.ends()); at.Before(settled) {
			return at
		}
	}
	return settled
}

// podsAreNewer reports whether all pods were created after the content changed, so that they
// were started with it. Pods of the very second count as older.
func (t *changeTrigger) podsAreNewer() bool {
	oldest := t.ages.Oldest
	return oldest.IsZero() || oldest.After(t.config.Changed)
}

// note notes when the restart for a change is due, and whether the change comes too soon.
func (t *changeTrigger) note(tick time.Time) {
	due, _ := t.times(tick)
	t.state.status.NextChangeTime = &metav1.Time{Time: due}
	t.interval.count(t.config.began())
}

// start returns the hash of the content that the pods of a restart start with that any trigger starts
// now, "" if it does not matter.
func (t *changeTrigger) start() string {
	t.state.status.NextChangeTime = nil
	if !t.possible() {
		return ""
	}
	return t.config.Hash
}

// serve notes that a restart was sent and has ended, so that the pods have its content:
// if that fails, the same content is not tried again. A workload that was deleted or is not
// the target any more says nothing about the next.
func (t *changeTrigger) serve(active *tidekeeperv1.ActiveRestart, reason string) {
	if active.ConfigHash != "" && podconfig.SameScope(active.ConfigHash, t.state.status.ConfigHash) &&
		reason != tidekeeperv1.ReasonTargetNotFound && !t.state.retargeted(active) {
		t.state.status.ConfigHash = active.ConfigHash
	}
}

// message says when a change of the content restarts the target, or is "" if no change does.
func (t *changeTrigger) message() string {
	objects := "ConfigMaps"
	switch t.state.spec.OnConfigChange {
	case "":
		return ""
	case tidekeeperv1.ConfigMapsAndSecrets:
		objects = "ConfigMaps and Secrets"
	}
	message := fmt.Sprintf("it is restarted when the %s that its pods use change", objects)
	if next := t.state.status.NextChangeTime; next != nil {
		message = fmt.Sprintf("the content of the %s that its pods use has changed, so that a restart is due at %s", objects, formatTime(next.Time))
		if next.Time.Equal(t.interval.ends()) {
			message += fmt.Sprintf(", %s after the last one for a change", t.state.spec.GetMinInterval())
		}
	}
	if t.interval.stormy() {
		message += "; changes keep coming, see the condition " + tidekeeperv1.ConditionRestartStorm
	}
	return message
}

// ChangePending reports whether a ScheduledRestart has a change to restart for that its status
// does not show yet: neither when it is due nor that it is served. hash is that of the content now;
// "" if it is not known.
func ChangePending(restart *tidekeeperv1.ScheduledRestart, hash string) bool {
	status := &restart.Status
	return restart.Spec.OnConfigChange != "" && !restart.Spec.Suspend && status.ConsecutiveFailures < restart.Spec.FailureLimit && status.Active == nil && status.NextChangeTime == nil &&
		podconfig.SameScope(status.ConfigHash, hash) && status.ConfigHash != hash
}
