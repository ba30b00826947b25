// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"tidekeeper.dev/tidekeeper/internal/lease"
)

// observeWithin is how long a manager may take to observe a change before it seems that
// none runs. It takes less than a second where one does.
const observeWithin = 10 * time.Second

// Manager is what the leases of the leader election show of the manager.
type Manager struct {
	// Leader is the manager that leads, empty if none does.
	Leader string
	// Namespace is that of the lease, empty if there is no lease: a manager that runs
	// without leader election has none.
	Namespace string
	// Problem says why none leads.
	Problem string
}

// ManagerOf returns what some leases of that name, from any namespaces, show.
func ManagerOf(leases []coordinationv1.Lease, now time.Time) Manager {
	m := Manager{Problem: "there is no lease " + lease.Name}
	var renewed time.Time
	for i := range leases {
		l := &leases[i]
		leader, err := lease.Leader(l, now)
		if err == nil {
			return Manager{Leader: leader, Namespace: l.Namespace}
		}
		at := l.CreationTimestamp.Time
		if l.Spec.RenewTime != nil {
			at = l.Spec.RenewTime.Time
		}
		if m.Namespace == "" || at.After(renewed) {
			m, renewed = Manager{Namespace: l.Namespace, Problem: err.Error()}, at
		}
	}
	return m
}

// Unobserved counts objects whose last change no manager has observed in time.
type Unobserved struct {
	Count int
	// Oldest names the object that has waited longest, Since is when it was changed.
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
	since := changed(o)
	if now.Sub(since) < observeWithin {
		u.Recent++
		return
	}
	if u.Count++; u.Count == 1 || since.Before(u.Since) {
		u.Oldest, u.Since = kind+" "+o.GetName(), since
	}
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

// Message says what has not been observed, empty if there is nothing.
func (u *Unobserved) Message(now time.Time) string {
	if u.Count == 0 {
		return ""
	}
	more := ""
	if u.Count > 1 {
		more = ", nor " + plural(u.Count-1, "other")
	}
	return fmt.Sprintf("%s was changed %s ago and no manager has observed it%s", u.Oldest, duration.HumanDuration(now.Sub(u.Since)), more)
}

// Outdated says why what is shown may be out of date, empty if nothing suggests that.
// Without a lease only an object that is not observed shows that no manager runs.
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
