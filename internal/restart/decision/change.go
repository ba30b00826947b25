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

// Config describes the ConfigMaps and Secrets whose changes trigger restarts of the target
// (spec.onConfigChange), as far as they are known.
type Config struct {
	// Hash is the hash of the content of the ConfigMaps and Secrets; "" if it is not known yet.
	Hash string
	// Changed is the time of the last change of the content, or a later time if the exact time is
	// unknown.
	Changed time.Time
	// Restless is the time of the first change in the current burst (a series of changes in quick
	// succession); zero if the last change was a single change. Source is the object that changed
	// last.
	Restless time.Time
	Source   Source
	// Problem is the reason for which the content is unknown, and Message explains it. Both are ""
	// if the content is known.
	Problem, Message string
	// Missing names an object or key that does not exist although new pods need it to start; "" if
	// all of them exist.
	Missing string
	// Live is true if the content was read from the API server instead of the cache.
	Live bool
}

// DefaultChangeSettle is the default of [Input.ChangeSettle], the time for which ConfigMaps and
// Secrets must remain unchanged before a restart becomes due.
const DefaultChangeSettle = 10 * time.Second

// configRetry is the time after which a decision is repeated if the content of the ConfigMaps and
// Secrets is not known yet.
const configRetry = time.Second

// began returns the time of the first change in the current burst of changes.
func (c *Config) began() time.Time {
	if c.Restless.IsZero() {
		return c.Changed
	}
	return c.Restless
}

// burstEnds returns the time at which the content will have remained unchanged for the given
// duration.
func (c *Config) burstEnds(settle time.Duration) time.Time {
	return c.Changed.UTC().Truncate(time.Second).Add(settle)
}

// changeTrigger restarts workloads when the ConfigMaps and Secrets that they use change.
//
// status.configHash is the hash of the content with which the pods were started. All decisions
// result from comparing this hash with the hash of the current content. A manager can therefore
// neither forget a change nor restart the target twice for the same change.
type changeTrigger struct {
	state    *state
	windows  schedule.Windows
	interval *interval
	// config describes the ConfigMaps and Secrets, settle is the time for which they must remain
	// unchanged, and ages describes the ages of the pods. See [Input].
	config  *Config
	settle  time.Duration
	ages    *PodAges
	history *history
	wake    *alarm
	// changed is the restart for a change that is due now; nil if none is due.
	changed *candidate
}

// times returns the due time of the restart for a change; there is no deadline. The due time is the
// tick (the scheduled time) plus the offset of this ScheduledRestart, but not before the minimum
// interval has ended. More changes while the restart waits postpone it to the end of the burst of
// changes, without adding the offset again. If the restart has already started, its due time is its
// start time.
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

// pass does nothing after a restart, since the next due time follows from the content with which
// the pods were started.
func (t *changeTrigger) pass(*candidate) {}

// edited resets the due time of the restart for a change and the number of consecutive delays after
// an edit of the spec. retargeted is true if the edit has changed the target.
func (t *changeTrigger) edited(retargeted bool) {
	t.state.status.NextChangeTime = nil
	t.interval.reset()
	if retargeted {
		t.started("", time.Time{})
		t.interval.forget()
	}
}

// observe determines whether a restart is due because the content changed, and returns the next
// fact that is needed to determine this. rolling is true if the pods are being replaced.
func (t *changeTrigger) observe(rolling bool) Need {
	status, c := t.state.status, t.config
	switch {
	case t.state.spec.OnConfigChange == "":
		t.started("", time.Time{})
		status.NextChangeTime = nil
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
		// The content of the ConfigMaps and Secrets is read for the first time. Changes before that
		// do not count.
		t.started(c.Hash, t.state.now)
		status.NextChangeTime = nil
		return NeedNothing
	case status.ConfigHash == c.Hash:
		return t.observeBack()
	default:
		return t.observeChanged(rolling)
	}
}

// observeChanged determines the due time of the restart if the content differs from the content
// with which the pods were started.
func (t *changeTrigger) observeChanged(rolling bool) Need {
	status, now := t.state.status, t.state.now
	tick := t.tick()
	if status.NextChangeTime == nil && t.interval.ends().After(now) {
		// The restart is not due before the end of the minimum interval. Write its due time to the
		// status now, although the content may not have settled yet.
		if !t.config.Live {
			return NeedLiveConfig
		}
		t.note(tick)
	}
	if tick.After(now) {
		t.wake.set(tick)
		return NeedNothing
	}
	// Do not read the pods while they are being replaced, because their ages keep changing.
	if !rolling {
		if done, need := t.observePods(); done || need != NeedNothing {
			return need
		}
	}
	if status.NextChangeTime == nil && !t.config.Live {
		// The cache of a newly started manager may show a change that has since been reverted.
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

// observePods determines whether all pods were already started with the new content, so that no
// restart is needed.
func (t *changeTrigger) observePods() (done bool, need Need) {
	switch {
	case t.ages == nil:
		return false, NeedPodAges
	case t.ages.Oldest.IsZero() && t.state.target.Pods > 0 && !t.ages.Live:
		return false, NeedLivePodAges
	case !t.podsAreNewer():
		return false, NeedNothing
	case !t.config.Live:
		// The cache of a newly started manager may be older than the status, which an earlier
		// manager wrote.
		return false, NeedLiveConfig
	}
	if need := t.skip(tidekeeperv1.ReasonAlreadyRestarted, "all pods were started after the change"); need != NeedNothing {
		return false, need
	}
	t.started(t.config.Hash, t.state.now)
	return true, NeedNothing
}

// started records the hash of the content with which the pods were started, and a time at which the
// content had that hash.
func (t *changeTrigger) started(hash string, at time.Time) {
	t.state.status.ConfigHash, t.state.status.ConfigTime = hash, nil
	if hash != "" {
		t.state.status.ConfigTime = &metav1.Time{Time: at.Truncate(time.Second)}
	}
}

// observeBack ends the wait for a restart when the content was changed back to the content with
// which the pods were started. Before that, it waits until the content has settled. Content that
// changes back and forth would otherwise cause many status writes.
func (t *changeTrigger) observeBack() Need {
	t.interval.settle(t.config.Changed, t.wake)
	if ends := t.config.burstEnds(t.settle); t.state.status.NextChangeTime != nil && ends.After(t.state.now) {
		t.wake.set(ends)
		return NeedNothing
	}
	return t.skip(tidekeeperv1.ReasonWithdrawn, "the content is again what the pods were started with")
}

// skip ends the wait for a restart that is no longer needed. If the restart was due, it adds a
// history entry. Such an entry requires content that was read from the API server, since the cache
// may be older than the change.
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

// possible reports whether a change of ConfigMaps or Secrets can currently trigger a restart of the
// target.
func (t *changeTrigger) possible() bool {
	return t.state.spec.OnConfigChange != "" && t.state.replacesPods() && t.config != nil && t.config.Problem == ""
}

// lasts reports whether the restart in progress is still necessary: the content is the same as when
// the restart was claimed, and not all pods are newer than the content. After another change, even
// if it was reverted, a new restart becomes due at its own time.
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

// tick returns the scheduled time (the tick) of the restart for a change. It must be later than all
// times for which the target was restarted, since these restarts did not have the new content.
// Otherwise the new restart would count as already done.
func (t *changeTrigger) tick() time.Time {
	tick := t.settled()
	for _, at := range marks(t.state.target, t.state.now) {
		tick = later(tick, at.Truncate(time.Second).Add(time.Second))
	}
	return tick
}

// settled returns the time at which the content will have remained unchanged for long enough, but
// at most minIntervalSeconds after the burst of changes began.
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

// podsAreNewer reports whether all pods were created after the last change of the content, so that
// they were started with it. Pods that were created in the same second do not count as newer.
func (t *changeTrigger) podsAreNewer() bool {
	oldest := t.ages.Oldest
	return oldest.IsZero() || oldest.After(t.config.Changed)
}

// note writes the due time of the restart for a change to the status, and counts the change if it
// came too soon after the last restart for a change. See [interval.count].
func (t *changeTrigger) note(tick time.Time) {
	due, _ := t.times(tick)
	t.state.status.NextChangeTime = &metav1.Time{Time: due}
	t.interval.count(t.config.began())
}

// start returns the hash of the content with which new pods will start if any trigger starts a
// restart now; "" if changes cannot trigger restarts. It also clears the due time of the restart
// for a change, since the new restart replaces it.
func (t *changeTrigger) start() string {
	t.state.status.NextChangeTime = nil
	if !t.possible() {
		return ""
	}
	return t.config.Hash
}

// serve records that the pods have the content with which a restart that has ended was started.
// This includes failed restarts, so that no other restart is tried for the same content. It
// excludes restarts of a workload that was deleted or is no longer the target.
func (t *changeTrigger) serve(active *tidekeeperv1.ActiveRestart, reason string) {
	if active.ConfigHash != "" && podconfig.SameScope(active.ConfigHash, t.state.status.ConfigHash) &&
		reason != tidekeeperv1.ReasonTargetNotFound && !t.state.retargeted(active) {
		t.started(active.ConfigHash, active.StartedTime.Time)
	}
}

// message describes when changes of ConfigMaps and Secrets restart the target; "" if they do not
// restart it.
func (t *changeTrigger) message() string {
	objects := "ConfigMaps"
	switch t.state.spec.OnConfigChange {
	case "":
		return ""
	case tidekeeperv1.ConfigMapsAndSecrets:
		objects = "ConfigMaps and Secrets"
	}
	message := fmt.Sprintf("restarts when the %s used by its pods change", objects)
	if next := t.state.status.NextChangeTime; next != nil {
		message = fmt.Sprintf("the content of the %s used by its pods has changed, so a restart is due at %s", objects, formatTime(next.Time))
		if next.Time.Equal(t.interval.ends()) {
			message += fmt.Sprintf(", %s after the last one for a change", t.state.spec.GetMinInterval())
		}
	}
	if t.interval.stormy() {
		message += "; changes keep coming, see the condition " + tidekeeperv1.ConditionRestartStorm
	}
	return message
}

// ChangePending reports whether a ScheduledRestart must be restarted for a change that its status
// does not show yet. hash is the hash of the current content; "" if unknown.
func ChangePending(restart *tidekeeperv1.ScheduledRestart, hash string) bool {
	status := &restart.Status
	return restart.Spec.OnConfigChange != "" && !restart.Spec.Suspend && status.ConsecutiveFailures < restart.Spec.FailureLimit && status.Active == nil && status.NextChangeTime == nil &&
		podconfig.SameScope(status.ConfigHash, hash) && status.ConfigHash != hash
}
