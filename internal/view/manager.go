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
)

// observeWithin is the time after which an unobserved change suggests that no manager runs. When another
// manager takes over, it observes changes within a second.
const observeWithin = 10 * time.Second

// Manager is the state of the manager according to the leases of the leader election.
type Manager struct {
	// Leader is the identity of the leader, empty if there is none.
	Leader string
	// Namespace is the namespace of the lease, empty without a lease: a manager without leader election has
	// none.
	Namespace string
	// Problem explains why there is no leader.
	Problem string
	// Published has the settings that the manager published, by flag name.
	Published map[string]string
}

// ManagerOf returns the state of the manager from the leases with its name, of all namespaces.
func ManagerOf(leases []coordinationv1.Lease, now time.Time) Manager {
	m := Manager{Problem: "there is no lease " + lease.Name}
	var renewed time.Time
	for i := range leases {
		l := &leases[i]
		leader, err := lease.Leader(l, now)
		if err == nil {
			return Manager{Leader: leader, Namespace: l.Namespace, Published: lease.Settings(l)}
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

// Unobserved counts the objects whose last change, or due tick, no manager has observed in time.
type Unobserved struct {
	Count int
	// Oldest is the object that has waited longest, and Since is the time since when.
	Oldest string
	Since  time.Time
	// Recent is the number of objects whose change is so recent that a manager may still observe it in time.
	Recent int
}

// Add counts an object if its status is of an older generation.
func (u *Unobserved) Add(kind string, o metav1.Object, observedGeneration int64, now time.Time) {
	if observedGeneration >= o.GetGeneration() {
		return
	}
	u.add(kind, o, changed(o), now)
}

// add counts an object that has waited since the given time.
func (u *Unobserved) add(kind string, o metav1.Object, since, now time.Time) {
	if now.Sub(since) < observeWithin {
		u.Recent++
		return
	}
	if u.Count++; u.Count == 1 || since.Before(u.Since) {
		u.Oldest, u.Since = kind+" "+o.GetName(), since
	}
}

// AddRestart counts a ScheduledRestart if its status is of an older generation, or shows neither the request
// in its annotation nor its due tick: a running manager would have recorded the reason for the wait.
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

// expiry returns the deadline of the next tick, after which a running manager has recorded the tick,
// whatever holds it back. It is zero for a restart that is suspended, stalled or active.
func expiry(r *tidekeeperv1.ScheduledRestart) time.Time {
	shown := RestartOf(r, nil)
	stalled := meta.IsStatusConditionTrue(r.Status.Conditions, tidekeeperv1.ConditionStalled)
	if stalled || r.Spec.Suspend || r.Status.Active != nil || !shown.ByTick || r.Spec.StartingDeadlineSeconds <= 0 {
		return time.Time{}
	}
	return shown.NextStart.Add(time.Duration(r.Spec.StartingDeadlineSeconds) * time.Second)
}

// NoticesRequest reports whether the status of a ScheduledRestart shows the request in its annotation, if
// there is one.
func NoticesRequest(r *tidekeeperv1.ScheduledRestart, now time.Time) bool {
	request, err := decision.RequestedTime(r, now)
	return err != nil || request.IsZero() || noticed(r, request)
}

// noticed reports whether the status of a ScheduledRestart shows a request.
func noticed(r *tidekeeperv1.ScheduledRestart, request time.Time) bool {
	times := []*metav1.Time{r.Status.PendingRequestTime, r.Status.LastRequestTime}
	if active := r.Status.Active; active != nil && active.Trigger == tidekeeperv1.TriggerRequest {
		times = append(times, &active.ScheduledTime)
	}
	return slices.ContainsFunc(times, func(t *metav1.Time) bool { return t != nil && !t.Time.Before(request) })
}

// idle reports whether nothing is due according to the status.
func idle(r *tidekeeperv1.ScheduledRestart) bool {
	ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady)
	return r.Status.Active == nil && !r.Spec.Suspend && ready != nil && ready.Reason == tidekeeperv1.ReasonScheduled
}

// changed returns the time of the last change of an object, apart from its status.
func changed(o metav1.Object) time.Time {
	at := o.GetCreationTimestamp().Time
	if d := o.GetDeletionTimestamp(); d != nil && d.After(at) {
		at = d.Time
	}
	for _, f := range o.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}

// Message describes the unobserved changes, empty if there are none.
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

// Outdated explains that no manager runs, and since when; empty if a manager seems to run. Without a lease,
// only unobserved objects reveal that.
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
