// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// A restart by eviction has no trace in its target: the pods themselves say how far it is. So
// the write of the status that claims the tick starts it, and any manager that reads that status can
// continue it: a pod that is younger than Status.Active.Eviction.CreatedBefore is never evicted.

// Pods are the pods of the target, as the API server has them.
type Pods struct {
	// Active are the pods that have neither ended nor been deleted. Pods on nodes that are not
	// ready are not among them if the workload is restarted without these.
	Active []evict.Pod
	// Startups is how long each ready pod took to become ready.
	Startups map[string]time.Duration
}

// Attempts are the evictions that this process has tried for the restart in progress.
type Attempts struct {
	// LookedAt is when it looked at the pods last, and Evicted says that the last eviction
	// was accepted.
	LookedAt time.Time
	Evicted  bool
	// Refusal is why the last eviction was refused, if it was; at RefusedAt, and all of them since
	// RefusedSince.
	Refusal                 string
	RefusedAt, RefusedSince time.Time
}

const (
	// lookInterval is how often the pods are looked at during a restart if nothing happens to
	// the workload, and lookPause how often at most.
	lookInterval = 5 * time.Second
	lookPause    = time.Second
	// An eviction that was refused is tried again after firstRetry, and later after a quarter
	// of the time for which it has been refused, up to lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = time.Minute
	// pollInterval is how often a target is looked at that has no events while a tick waits for
	// it, and idleInterval how often if none does, only to say whether it exists.
	pollInterval = 10 * time.Second
	idleInterval = 10 * time.Minute
)

// evicts reports whether the next restart evicts pods.
func evicts(spec *tidekeeperv1.ScheduledRestartSpec) bool {
	return spec.Method == tidekeeperv1.MethodEvict
}

// Evicts reports whether a restart evicts pods: the restart in progress, or else the next.
func Evicts(restart *tidekeeperv1.ScheduledRestart) bool {
	return evicts(&restart.Spec) || restart.Status.Active != nil && restart.Status.Active.Eviction != nil
}

// eviction starts and follows restarts that evict pods.
type eviction struct {
	state   *state
	active  *activeRestart
	sending *sending
	ending  *ending
	wake    *alarm
	// live, pods and attempts are Live, Pods and Attempts of the input.
	live     bool
	pods     *Pods
	attempts Attempts
	// next are the pods to evict now.
	next []evict.Pod
}

// confirm returns the next fact that the start of a restart depends on which was due at a time.
func (e *eviction) confirm(due time.Time) Need {
	if !e.live {
		// No write to the target is refused because it has changed since: it may be paused now.
		return NeedLiveTarget
	}
	if need := e.sending.confirm(due); need != NeedNothing {
		return need
	}
	if e.pods == nil {
		return NeedPods
	}
	return NeedNothing
}

// unready returns a blocker if pods are not ready of a workload for which no event reports that.
func (e *eviction) unready() *blocker {
	t := e.state.target
	if !e.state.polled || e.state.spec.Precondition == tidekeeperv1.PreconditionNone {
		return nil
	}
	ready := int32(0)
	for _, pod := range e.pods.Active {
		if pod.Ready {
			ready++
		}
	}
	if ready >= t.Pods {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonTargetUnhealthy, message: fmt.Sprintf("%s is not healthy: %d of %d pods are ready", t, ready, t.Pods)}
}

// replaces reports whether there is a pod to evict for a candidate, or no pod at all.
func (e *eviction) replaces(c *candidate) bool {
	return c.trigger == tidekeeperv1.TriggerAge || len(e.pods.Active) == 0 ||
		slices.ContainsFunc(e.pods.Active, func(pod evict.Pod) bool { return evict.IsOld(pod, c.tick) })
}

// start makes the restart that was claimed just now a restart by eviction. The pods are looked
// at again once the claim is written.
func (e *eviction) start() {
	e.active.evict(evict.CreatedBefore(e.state.status.Active.ScheduledTime.Time, e.pods.Active))
}

// follow evicts the next pods of the restart in progress, or waits for the successors of pods that are
// gone. It returns the fact that this depends on.
func (e *eviction) follow() Need {
	active, t, now := e.state.status.Active, e.state.target, e.state.now
	e.active.noteRefusal(e.attempts)
	deadline := active.StartedTime.Add(seconds(e.state.spec.ProgressDeadlineSeconds))
	late := !now.Before(deadline)
	rolling := t.Rollout.Updating && !t.Rollout.Exceeded && !t.OnDelete
	switch pause := e.attempts.LookedAt.Add(lookPause); {
	case t.Deleting:
		e.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTargetNotFound, deletedMeanwhile)
	case late && !e.live:
		return NeedLiveTarget
	case rolling && late:
		e.fail(fmt.Sprintf("%s is being rolled out: %s", t, t.Rollout.Message))
	case rolling:
		// That replaces the pods as well.
		e.wake.set(deadline)
	case e.pods == nil && !late && !e.attempts.LookedAt.After(now) && now.Before(pause):
		e.wake.set(pause)
	case e.pods == nil:
		return NeedPods
	default:
		e.evictNext(deadline)
	}
	return NeedNothing
}

// evictNext evicts the next pods, or ends the restart.
func (e *eviction) evictNext(deadline time.Time) {
	active, t, now := e.state.status.Active, e.state.target, e.state.now
	plan := evict.Decide(evict.Input{
		Pods: e.pods.Active, CreatedBefore: active.Eviction.CreatedBefore.Time, Desired: t.Pods,
		MaxUnavailable: evict.Limit(e.state.spec.MaxUnavailable, t.Pods), Ordered: t.Kind == workload.StatefulSet.Kind,
	})
	switch {
	case plan.Done:
		e.ending.startups = e.startups(active.Eviction.CreatedBefore.Time)
		e.ending.complete(tidekeeperv1.OutcomeSucceeded, "", "")
	case !now.Before(deadline):
		e.fail(fmt.Sprintf("%d pods are older than the tick, and %d of %d are not ready", plan.Old, plan.Unready, t.Pods))
	default:
		e.wake.set(deadline)
		if retry := e.retryAt(); len(plan.Next) > 0 && now.Before(retry) {
			e.wake.set(retry)
			return
		}
		e.next = plan.Next
		e.wake.set(now.Add(lookInterval))
	}
}

// retryAt returns when an eviction may be tried again; the zero time if the last eviction was not
// refused.
func (e *eviction) retryAt() time.Time {
	a := e.attempts
	if a.Refusal == "" || a.RefusedAt.After(e.state.now) {
		return time.Time{}
	}
	return a.RefusedAt.Add(min(max(firstRetry, a.RefusedAt.Sub(a.RefusedSince)/4), lastRetry))
}

// fail ends the restart in progress, as it takes too long.
func (e *eviction) fail(message string) {
	reason := tidekeeperv1.ReasonTimeout
	message = fmt.Sprintf("not complete after %d s: %s", e.state.spec.ProgressDeadlineSeconds, message)
	if refused := e.state.status.Active.Eviction.Refused; refused != "" {
		reason = tidekeeperv1.ReasonEvictionRefused
		message += "; " + refused
	}
	e.ending.complete(tidekeeperv1.OutcomeFailed, reason, message)
}

// startups returns how long the pods took to become ready that were created since a time.
func (e *eviction) startups(since time.Time) []time.Duration {
	took := []time.Duration{}
	for _, pod := range e.pods.Active {
		if length, ok := e.pods.Startups[pod.Name]; ok && !evict.IsOld(pod, since) {
			took = append(took, length)
		}
	}
	return took
}
