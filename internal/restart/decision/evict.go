// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// A restart by eviction has no trace in its target: the pods themselves say how far it is. So
// the write of the status that claims the tick starts it, and any manager that reads that status can
// continue it: a pod that is younger than Status.Active.Eviction.CreatedBefore is never evicted.

// Pods are the pods of the target, as the API server has them.
type Pods struct {
	// Active are those that have neither ended nor been deleted. Pods on nodes that are not
	// ready are not among them if the workload is restarted without these.
	Active []evict.Pod
	// Startups is how long those took to become ready that are ready.
	Startups map[string]time.Duration
}

// Attempts is what this process remembers of its evictions for the restart in progress.
type Attempts struct {
	// LookedAt is when it looked at the pods last, and Evicted says that the last eviction
	// was accepted.
	LookedAt time.Time
	Evicted  bool
	// Refusal is why the last one was refused, if it was; at RefusedAt, and all of them since
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

// Evicts reports whether a restart evicts pods: the one in progress, or else the next one.
func Evicts(restart *tidekeeperv1.ScheduledRestart) bool {
	return evicts(&restart.Spec) || restart.Status.Active != nil && restart.Status.Active.Eviction != nil
}

// asEvicted returns the state of a workload as it matters to the next restart. Pods of an earlier
// template are no rollout in progress if the workload leaves them as they are until they are gone.
func asEvicted(spec *tidekeeperv1.ScheduledRestartSpec, t *workload.State) *workload.State {
	if !evicts(spec) || !t.OnDelete {
		return t
	}
	state := *t
	state.Rollout = t.Availability
	return &state
}

// mayEvict reports whether a restart by eviction can be started for a candidate. Otherwise
// something is needed, or there is no pod to evict.
func (d *decider) mayEvict(c *candidate) bool {
	switch {
	case !d.in.Live:
		// No write to the target is refused because it has changed since: it may be paused now.
		d.out.Needs = NeedLiveTarget
		return false
	case d.unanswered():
		d.out.Needs = NeedAnswer
		return false
	case !d.in.FreezesLive:
		d.out.Needs = NeedLiveFreezes
		d.out.Due, _ = d.times(c.tick, c.trigger)
		return false
	case d.in.Pods == nil:
		d.out.Needs = NeedPods
		return false
	}
	if b := d.unreadyPods(); b != nil {
		d.wait([]*candidate{c}, b)
		return false
	}
	if c.trigger == tidekeeperv1.TriggerAge || len(d.in.Pods.Active) == 0 {
		return true
	}
	for _, pod := range d.in.Pods.Active {
		if evict.IsOld(pod, c.tick) {
			return true
		}
	}
	d.resolve(c, tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonAlreadyRestarted, fmt.Sprintf("all pods of %s were created since", d.in.Target))
	return false
}

// unreadyPods returns a blocker if not all pods are ready of a workload of which only the pods say
// so.
func (d *decider) unreadyPods() *blocker {
	if !d.in.Polled || d.spec.Precondition == tidekeeperv1.PreconditionNone {
		return nil
	}
	ready := int32(0)
	for _, pod := range d.in.Pods.Active {
		if pod.Ready {
			ready++
		}
	}
	if ready >= d.in.Target.Pods {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonTargetUnhealthy, message: fmt.Sprintf("%s is not healthy: %d of %d pods are ready", d.in.Target, ready, d.in.Target.Pods)}
}

// poll wakes when a target has to be looked at that has no events: while a tick waits for it, and
// seldom if it does not exist.
func (d *decider) poll() {
	switch {
	case !d.in.Polled || d.out.Status.Active != nil:
	case d.waitsFor != nil && d.waitsFor.until.IsZero(): // Otherwise it is the time that is waited for.
		d.wakeAt(d.in.Now.Add(pollInterval))
	case d.in.Target == nil:
		d.wakeAt(d.in.Now.Add(idleInterval))
	}
}

// startEviction makes the restart that was claimed just now one by eviction. The pods are looked
// at again once the claim is written.
func (d *decider) startEviction(due time.Time) {
	active := d.out.Status.Active
	before := evict.CreatedBefore(active.ScheduledTime.Time, d.in.Pods.Active)
	active.Eviction = &tidekeeperv1.ActiveEviction{CreatedBefore: metav1.Time{Time: before}}
	d.out.Started, d.out.Due = active.ScheduledTime.Time, due
	d.wakeAt(d.in.Now)
}

// followEviction evicts the next pods of the restart in progress, or waits for the successors of
// those that are gone.
func (d *decider) followEviction() {
	active, t := d.out.Status.Active, d.in.Target
	d.noteRefusal()
	deadline := active.StartedTime.Add(seconds(d.spec.ProgressDeadlineSeconds))
	late := !d.in.Now.Before(deadline)
	rolling := t.Rollout.Updating && !t.Rollout.Exceeded && !t.OnDelete
	switch pause := d.in.Attempts.LookedAt.Add(lookPause); {
	case t.Deleting:
		d.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTargetNotFound, "the workload was deleted during the restart")
		return
	case late && !d.in.Live:
		d.out.Needs = NeedLiveTarget
		return
	case rolling && late:
		d.failEviction(fmt.Sprintf("%s is being rolled out: %s", t, t.Rollout.Message))
		return
	case rolling:
		// That replaces the pods as well.
		d.wakeAt(deadline)
		return
	case d.in.Pods == nil && !late && !d.in.Attempts.LookedAt.After(d.in.Now) && d.in.Now.Before(pause):
		d.wakeAt(pause)
		return
	case d.in.Pods == nil:
		d.out.Needs = NeedPods
		return
	}
	plan := evict.Decide(evict.Input{
		Pods: d.in.Pods.Active, CreatedBefore: active.Eviction.CreatedBefore.Time, Desired: t.Pods,
		MaxUnavailable: evict.Limit(d.spec.MaxUnavailable, t.Pods), Ordered: t.Kind == workload.StatefulSet.Kind,
	})
	switch {
	case plan.Done:
		d.in.PodStartups = d.newStartups()
		d.complete(tidekeeperv1.OutcomeSucceeded, "", "")
	case late:
		d.failEviction(fmt.Sprintf("%d pods are older than the tick, and %d of %d are not ready", plan.Old, plan.Unready, t.Pods))
	default:
		d.wakeAt(deadline)
		if retry := d.retryAt(); len(plan.Next) > 0 && d.in.Now.Before(retry) {
			d.wakeAt(retry)
			return
		}
		d.out.Evict = plan.Next
		d.wakeAt(d.in.Now.Add(lookInterval))
	}
}

// noteRefusal writes down why the last eviction was refused.
func (d *decider) noteRefusal() {
	eviction := d.out.Status.Active.Eviction
	if d.in.Attempts.Refusal != "" {
		eviction.Refused = text.Shorten(d.in.Attempts.Refusal, tidekeeperv1.MaxRefusalLength)
	} else if d.in.Attempts.Evicted {
		eviction.Refused = ""
	}
}

// retryAt returns when an eviction may be tried again; the zero time if the last one was not
// refused.
func (d *decider) retryAt() time.Time {
	a := d.in.Attempts
	if a.Refusal == "" || a.RefusedAt.After(d.in.Now) {
		return time.Time{}
	}
	return a.RefusedAt.Add(min(max(firstRetry, a.RefusedAt.Sub(a.RefusedSince)/4), lastRetry))
}

// failEviction ends the restart in progress, as it takes too long.
func (d *decider) failEviction(message string) {
	reason := tidekeeperv1.ReasonTimeout
	message = fmt.Sprintf("not complete after %d s: %s", d.spec.ProgressDeadlineSeconds, message)
	if refused := d.out.Status.Active.Eviction.Refused; refused != "" {
		reason = tidekeeperv1.ReasonEvictionRefused
		message += "; " + refused
	}
	d.complete(tidekeeperv1.OutcomeFailed, reason, message)
}

// newStartups returns how long the pods took to become ready that the restart in progress has
// brought.
func (d *decider) newStartups() []time.Duration {
	took := []time.Duration{}
	for _, pod := range d.in.Pods.Active {
		if length, ok := d.in.Pods.Startups[pod.Name]; ok && !evict.IsOld(pod, d.out.Status.Active.Eviction.CreatedBefore.Time) {
			took = append(took, length)
		}
	}
	return took
}
