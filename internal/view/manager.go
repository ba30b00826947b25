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

// observeWithin is how long a manager may take to observe a change before it seems that
// none runs. It takes less than a second if another manager runs.
const observeWithin = 10 * time.Second

// Manager is the state of the manager in the leases of the leader election.
type Manager struct {
	// Leader is the manager that leads, empty if none does.
	Leader string
	// Namespace is that of the lease, empty if there is no lease: a manager that runs
	// without leader election has none.
	Namespace string
	// Problem says why none leads.
	Problem string
	// Published are the settings that the manager has published, by the names of their flags.
	Published map[string]string
}

// ManagerOf returns the state of the manager in leases of that name, from any namespaces.
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

// Unobserved counts objects of which no manager has observed the last change, or a due tick,
// in time.
type Unobserved struct {
	Count int
	// Oldest names the object that has waited longest, Since is since when.
	Oldest string
	Since  time.Time
	// Recent is how many objects were changed so recently that a manager may still be about
	// to observe it.
	Recent int
}

// Add counts an object, if its status is of an older generation.
func (u *Unobserved) Add(kind string, o metav1.Object, observedGeneration int64, now time.Time) {
	if observedGeneration >= o.GetGeneration() {
		return
	}
	u.add(kind, o, changed(o), now)
}

// add counts an object that has waited since a time.
func (u *Unobserved) add(kind string, o metav1.Object, since, now time.Time) {
	if now.Sub(since) < observeWithin {
		u.Recent++
		return
	}
	if u.Count++; u.Count == 1 || since.Before(u.Since) {
		u.Oldest, u.Since = kind+" "+o.GetName(), since
	}
}

// AddRestart counts a ScheduledRestart, also if its status is of this generation, but shows
// neither the request in its annotation nor that its tick is due: a manager that runs says of each
// the reason for the wait.
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
	}
}

// NoticesRequest reports whether the status of a ScheduledRestart shows the request in its
// annotation, or there is none.
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

// changed is when an object other than its status was changed last.
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

// Message names the changes that were not observed, empty if there are none.
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

// Outdated says that no manager runs, and since when; empty if nothing suggests that.
// Without a lease only an object that is not observed shows it.
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
