// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/lease"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// observeWithin is the time within which a running manager observes a change. A change that no
// manager has observed in this time is evidence that no manager is running. A new leader observes
// changes within a second.
const observeWithin = 10 * time.Second

// Manager describes the current leader among the managers, according to their leader election
// leases.
type Manager struct {
	// Leader is the leader's identity. It is empty if there is no leader.
	Leader string
	// Namespace is the lease's namespace. It is empty if there is no lease, as with a manager
	// without leader election.
	Namespace string
	// Since is the time since which the leader has been leading; zero if it is unknown, or if there
	// is no leader.
	Since time.Time
	// Problem explains why there is no leader, or is empty if there is a leader.
	Problem string
	// Published maps setting names to the values that the manager published in its lease: the
	// flags, and the controllers that the manager runs.
	Published map[string]string
}

// NotRunning reports whether the leader is known not to run the controller with the given name. It
// returns false if there is no leader, or if the leader's controllers are unknown.
func (m *Manager) NotRunning(controller string) bool {
	return m.Leader != "" && len(m.Published) > 0 && m.Published[lease.RunsSetting(controller)] != "true"
}

// ManagerOf returns the state of the manager. The parameter leases lists the manager's leases in
// all namespaces.
func ManagerOf(leases []coordinationv1.Lease, now time.Time) Manager {
	m := Manager{Problem: "there is no lease " + lease.Name}
	var renewed time.Time
	for i := range leases {
		l := &leases[i]
		leader, err := lease.Leader(l, now)
		if err == nil {
			m := Manager{Leader: leader, Namespace: l.Namespace, Published: lease.Settings(l)}
			if acquired := l.Spec.AcquireTime; acquired != nil {
				m.Since = acquired.Time
			}
			return m
		}
		at := l.CreationTimestamp.Time
		if l.Spec.RenewTime != nil {
			at = l.Spec.RenewTime.Time
		}
		if m.Namespace == "" || at.After(renewed) {
			m, renewed = Manager{Namespace: l.Namespace, Problem: err.Error(), Published: lease.Settings(l)}, at
		}
	}
	return m
}

// Unobserved counts the objects with a change, a restart request or a due tick (scheduled time)
// that no manager has observed in time.
type Unobserved struct {
	Count int
	// Oldest is the kind and name of the object that has been waiting the longest, and Since is the
	// time at which its wait began.
	Oldest string
	Since  time.Time
	// Recent is the number of objects with a change so recent that a manager may still observe it
	// in time.
	Recent int
}

// Add counts an object if its status was written for an older generation than the object's current
// generation.
func (u *Unobserved) Add(kind string, o metav1.Object, observedGeneration int64, now time.Time) {
	if observedGeneration >= o.GetGeneration() {
		return
	}
	u.add(kind, o, changed(o), now)
}

// add counts an object that has been waiting for a manager since the given time.
func (u *Unobserved) add(kind string, o metav1.Object, since, now time.Time) {
	if now.Sub(since) < observeWithin {
		u.Recent++
		return
	}
	if u.Count++; u.Count == 1 || since.Before(u.Since) {
		u.Oldest, u.Since = kind+" "+o.GetName(), since
	}
}

// AddRestart counts a ScheduledRestart if a running manager would have updated its status. The
// status was written for an older generation, or lacks a requested restart or the outcome of a due
// tick.
func (u *Unobserved) AddRestart(r *tidekeeperv1.ScheduledRestart, now time.Time) {
	const kind = "ScheduledRestart"
	switch request, err := decision.RequestedTime(r, now); {
	case r.Status.ObservedGeneration < r.Generation:
		u.Add(kind, r, r.Status.ObservedGeneration, now)
	case !r.DeletionTimestamp.IsZero():
	case err == nil && !request.IsZero() && !request.After(now) && !noticed(r, request):
		if at := changed(r); at.After(request) {
			request = at
		}
		u.add(kind, r, request, now)
	case idle(r):
		if next := RestartOf(r, nil).NextStart; next != nil && next.Before(now) {
			u.add(kind, r, *next, now)
		}
	default:
		if expired := expiry(r); !expired.IsZero() && expired.Before(now) {
			u.add(kind, r, expired, now)
		}
	}
}

// expiry returns the deadline of the next tick, by which a running manager would have recorded the
// tick's outcome. It returns the zero time for a ScheduledRestart without a next tick or deadline,
// and for a ScheduledRestart that is suspended, stalled or in progress.
func expiry(r *tidekeeperv1.ScheduledRestart) time.Time {
	shown := RestartOf(r, nil)
	stalled := meta.IsStatusConditionTrue(r.Status.Conditions, tidekeeperv1.ConditionStalled)
	if stalled || r.Spec.Suspend || r.Status.Active != nil || !shown.ByTick || r.Spec.StartingDeadlineSeconds <= 0 {
		return time.Time{}
	}
	return shown.NextStart.Add(time.Duration(r.Spec.StartingDeadlineSeconds) * time.Second)
}

// NoticesRequest reports whether the status of a ScheduledRestart reflects the restart that its
// annotation requests. It returns true if there is no valid request.
func NoticesRequest(r *tidekeeperv1.ScheduledRestart, now time.Time) bool {
	request, err := decision.RequestedTime(r, now)
	return err != nil || request.IsZero() || noticed(r, request)
}

// noticed reports whether the status of a ScheduledRestart reflects the restart requested at the
// given time, or a later request.
func noticed(r *tidekeeperv1.ScheduledRestart, request time.Time) bool {
	times := []*metav1.Time{r.Status.PendingRequestTime, r.Status.LastRequestTime}
	if active := r.Status.Active; active != nil && active.Trigger == tidekeeperv1.TriggerRequest {
		times = append(times, &active.ScheduledTime)
	}
	return slices.ContainsFunc(times, func(t *metav1.Time) bool { return t != nil && !t.Time.Before(request) })
}

// idle reports whether the ScheduledRestart waits for its next tick, according to the condition
// Ready.
func idle(r *tidekeeperv1.ScheduledRestart) bool {
	ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady)
	return r.Status.Active == nil && !r.Spec.Suspend && ready != nil && ready.Reason == tidekeeperv1.ReasonScheduled
}

// changed returns the time of the object's last change or of its deletion, ignoring changes of
// subresources such as status.
func changed(o metav1.Object) time.Time {
	at := workload.ChangedAt(o)
	if d := o.GetDeletionTimestamp(); d != nil && d.After(at) {
		at = d.Time
	}
	return at
}

// Message describes the changes that no manager has observed. It is empty if there are none.
func (u *Unobserved) Message(now time.Time) string {
	if u.Count == 0 {
		return ""
	}
	more := ""
	if u.Count > 1 {
		more = " and " + plural(u.Count-1, "other")
	}
	return fmt.Sprintf("no manager has observed %s%s for %s", u.Oldest, more, duration.HumanDuration(now.Sub(u.Since)))
}

// Outdated describes the evidence that no manager is running. It returns "" if there is no
// evidence. Without a lease, unobserved objects are the only possible evidence.
func Outdated(m Manager, u Unobserved, now time.Time) string {
	switch {
	case m.Leader != "":
		return ""
	case m.Namespace != "":
		return fmt.Sprintf("no manager leads: %s (namespace %s)", m.Problem, m.Namespace)
	default:
		return u.Message(now)
	}
}

// LeadingSince returns the time since which the manager that makes the next decisions has been the
// leader, or the zero time if this is unknown. If no manager is running, a manager is assumed to
// start now.
func LeadingSince(m Manager, u Unobserved, now time.Time) time.Time {
	if Outdated(m, u, now) != "" {
		return now
	}
	return m.Since
}
