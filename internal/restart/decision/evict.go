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

// A restart by eviction leaves no mark on its target: its progress follows from the pods. So the status write
// that claims the tick starts the restart, and any manager that reads the status can continue it. A pod that
// was created after Status.Active.Eviction.CreatedBefore is never evicted.

// Pods has the pods of the target as the API server has them.
type Pods struct {
	// Active has the pods that have neither ended nor been deleted. It omits pods on nodes that are not ready
	// if the workload is restarted without these nodes.
	Active []evict.Pod
	// Startups has the time that each ready pod took to become ready.
	Startups map[string]time.Duration
}

// Attempts describes the evictions that this process has tried for the restart in progress.
type Attempts struct {
	// LookedAt is the time of the last look at the pods, and Evicted is set if the last eviction was
	// accepted.
	LookedAt time.Time
	Evicted  bool
	// Refusal is the reason if the last eviction was refused, at RefusedAt. All evictions since RefusedSince
	// were refused.
	Refusal                 string
	RefusedAt, RefusedSince time.Time
}

const (
	// lookInterval is the interval between looks at the pods of a restart without events, and lookPause the
	// minimum time between two looks.
	lookInterval = 5 * time.Second
	lookPause    = time.Second
	// A refused eviction is retried after firstRetry, and later after a quarter of the time for which
	// evictions have been refused, but at most lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = time.Minute
	// pollInterval is the interval between reads of a target without events while a tick waits for the
	// target. idleInterval is the interval otherwise, only to notice whether the target exists.
	pollInterval = 10 * time.Second
	idleInterval = 10 * time.Minute
)

// evicts reports whether the next restart evicts pods.
func evicts(spec *tidekeeperv1.ScheduledRestartSpec) bool {
	return spec.Method == tidekeeperv1.MethodEvict
}

// Evicts reports whether the restart in progress, or else the next restart, evicts pods.
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
	// next has the pods to evict now.
	next []evict.Pod
}

// confirm returns the next fact that the start of a restart with the given due time depends on.
func (e *eviction) confirm(due time.Time) Need {
	if !e.live {
		// Evictions do not conflict with changes of the workload, which may be paused by now.
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

// unready returns a blocker if pods are not ready, for a workload whose changes cause no events.
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

// start turns the restart that was just claimed into a restart by eviction. The pods are read again after the
// claim is written.
func (e *eviction) start() {
	e.active.evict(evict.CreatedBefore(e.state.status.Active.ScheduledTime.Time, e.pods.Active))
}

// follow evicts the next pods of the restart in progress, or waits for the successors of evicted pods. It
// returns the fact that this depends on.
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
		// The rollout replaces the pods as well.
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

// retryAt returns the time of the next eviction after a refusal; zero if the last eviction was not refused.
func (e *eviction) retryAt() time.Time {
	a := e.attempts
	if a.Refusal == "" || a.RefusedAt.After(e.state.now) {
		return time.Time{}
	}
	return a.RefusedAt.Add(min(max(firstRetry, a.RefusedAt.Sub(a.RefusedSince)/4), lastRetry))
}

// fail ends the restart in progress after its deadline.
func (e *eviction) fail(message string) {
	reason := tidekeeperv1.ReasonTimeout
	message = fmt.Sprintf("not complete after %d s: %s", e.state.spec.ProgressDeadlineSeconds, message)
	if refused := e.state.status.Active.Eviction.Refused; refused != "" {
		reason = tidekeeperv1.ReasonEvictionRefused
		message += "; " + refused
	}
	e.ending.complete(tidekeeperv1.OutcomeFailed, reason, message)
}

// startups returns the start-up times of the pods that were created since the given time.
func (e *eviction) startups(since time.Time) []time.Duration {
	took := []time.Duration{}
	for _, pod := range e.pods.Active {
		if length, ok := e.pods.Startups[pod.Name]; ok && !evict.IsOld(pod, since) {
			took = append(took, length)
		}
	}
	return took
}
