// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// A restart by eviction does not change its target, since its progress can be derived from the
// pods. The restart therefore starts with the status write that claims the tick, and any manager
// that reads the status can continue it. Pods that were created after
// Status.Active.Eviction.CreatedBefore are never evicted.

// Pods holds the pods of the target, as read from the API server.
type Pods struct {
	// Active lists the pods that have not terminated and are not being deleted. If the workload is
	// restarted without its NotReady nodes, the list omits the pods on these nodes.
	Active []evict.Pod
	// Startups maps the name of each ready pod to its startup time.
	Startups map[string]time.Duration
}

// Attempts describes this process's eviction attempts for the restart in progress.
type Attempts struct {
	// LookedAt is the time at which the pods were last read. Evicted is true if the last eviction
	// was accepted.
	LookedAt time.Time
	Evicted  bool
	// Refusal is the reason for which the last eviction was rejected; "" if it was accepted.
	// RefusedAt is the time of that rejection. RefusedSince is the time of the first rejection
	// since an eviction was last accepted.
	Refusal                 string
	RefusedAt, RefusedSince time.Time
}

const (
	// lookInterval is the interval between reads of the pods during a restart by eviction if no
	// events arrive. lookPause is the minimum time between two reads.
	lookInterval = 5 * time.Second
	lookPause    = time.Second
	// firstRetry is the delay before a rejected eviction is retried for the first time.
	firstRetry = 5 * time.Second
	// pollInterval is the interval between reads of a target whose changes cause no events while a
	// due restart waits for it. idleInterval is the interval between reads that only check whether
	// a missing target exists.
	pollInterval = 10 * time.Second
	idleInterval = 10 * time.Minute
)

// evicts reports whether the next restart evicts pods.
func evicts(spec *tidekeeperv1.ScheduledRestartSpec) bool {
	return spec.Method == tidekeeperv1.MethodEvict
}

// Evicts reports whether the restart in progress evicts pods or, without a restart in progress,
// whether the next restart does.
func Evicts(restart *tidekeeperv1.ScheduledRestart) bool {
	return evicts(&restart.Spec) || restart.Status.Active != nil && restart.Status.Active.Eviction != nil
}

// eviction starts restarts by eviction, and follows them.
type eviction struct {
	state   *state
	active  *activeRestart
	sending *sending
	ending  *ending
	wake    *alarm
	// live is true if the target was read from the API server. pods lists its pods; nil if unknown.
	// attempts describes this process's eviction attempts.
	live     bool
	pods     *Pods
	attempts Attempts
	// next lists the pods that the current decision evicts.
	next []evict.Pod
}

// confirm returns the next fact that is needed to start a restart with the given due time.
func (e *eviction) confirm(due time.Time) Need {
	if !e.live {
		// Read the workload from the API server, because the cache may not show yet that it was
		// paused. An outdated version makes a patch of the workload fail, but not an eviction of
		// its pods.
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

// unready returns a blocker if pods of the target are not ready. It applies only to targets whose
// changes cause no events; for other targets it returns nil.
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

// replaces reports whether a restart for the candidate would evict any pod. It also returns true if
// there are no pods. For a restart for the age of pods, it always returns true, because the ages
// were already checked.
func (e *eviction) replaces(c *candidate) bool {
	return c.trigger == tidekeeperv1.TriggerAge || len(e.pods.Active) == 0 ||
		slices.ContainsFunc(e.pods.Active, func(pod evict.Pod) bool { return evict.IsOld(pod, c.tick) })
}

// start turns the restart that was just claimed into a restart by eviction. The next decision,
// after the claim was written to the status, reads the pods again before it evicts any.
func (e *eviction) start() {
	e.active.evict(evict.CreatedBefore(e.state.status.Active.ScheduledTime.Time, e.pods.Active))
}

// follow evicts the next pods of the restart in progress, or waits for replacements of evicted
// pods. It returns the next fact that is needed for this.
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
		// A rollout in progress also replaces the pods, so wait for it instead of evicting pods.
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

// leftText describes the pods that a restart has not replaced yet.
func leftText(plan evict.Plan, desired int32) string {
	var left []string
	if plan.Old > 0 {
		left = append(left, fmt.Sprintf("%d pods are older than the tick", plan.Old))
	}
	if plan.Unready > 0 {
		left = append(left, fmt.Sprintf("%d of %d are not ready", plan.Unready, desired))
	}
	return strings.Join(left, ", and ")
}

// evictNext evicts the next pods, or ends the restart if it is complete or its deadline has passed.
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
		e.fail(leftText(plan, t.Pods))
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

// retryAt returns the time of the next eviction after a rejected eviction; zero if the last
// eviction was not rejected.
func (e *eviction) retryAt() time.Time {
	a := e.attempts
	if a.Refusal == "" || a.RefusedAt.After(e.state.now) {
		return time.Time{}
	}
	return a.RefusedAt.Add(pods.EvictionRetry(a.RefusedAt.Sub(a.RefusedSince), firstRetry))
}

// fail ends the restart in progress as failed, after its deadline has passed.
func (e *eviction) fail(message string) {
	reason := tidekeeperv1.ReasonTimeout
	message = fmt.Sprintf("not complete after %d s: %s", e.state.spec.ProgressDeadlineSeconds, message)
	if refused := e.state.status.Active.Eviction.Refused; refused != "" {
		reason = tidekeeperv1.ReasonEvictionRefused
		message += "; " + refused
	}
	e.ending.complete(tidekeeperv1.OutcomeFailed, reason, message)
}

// startups returns the startup times of the pods that were created since the given time.
func (e *eviction) startups(since time.Time) []time.Duration {
	took := []time.Duration{}
	for _, pod := range e.pods.Active {
		if length, ok := e.pods.Startups[pod.Name]; ok && !evict.IsOld(pod, since) {
			took = append(took, length)
		}
	}
	return took
}
