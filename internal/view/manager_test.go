// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/lease"
)

func TestOutdated(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	held := func(namespace, holder string, ago time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tidekeeper"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now.Add(-ago)},
			},
		}
	}
	pool := func(name string, generation, observed int64, created, edited time.Duration) *tidekeeperv1.NodePool {
		p := &tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation, CreationTimestamp: metav1.NewTime(now.Add(-created))}}
		p.Status.ObservedGeneration = observed
		p.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Time: &metav1.Time{Time: now.Add(-edited)}},
			{Manager: "tidekeeper", Subresource: "status", Time: &metav1.Time{Time: now}},
		}
		return p
	}
	fresh, stale := held("ops", "a", time.Second), held("tidekeeper-system", "b", time.Hour)
	for _, tt := range []struct {
		name   string
		leases []coordinationv1.Lease
		pools  []*tidekeeperv1.NodePool
		want   string
	}{
		{"nothing", nil, nil, ""},
		{"one leads", []coordinationv1.Lease{stale, fresh}, nil, ""},
		{"one leads, and a pool waits", []coordinationv1.Lease{fresh}, []*tidekeeperv1.NodePool{pool("p", 2, 1, time.Hour, time.Hour)}, ""},
		{"none leads", []coordinationv1.Lease{held("old", "c", 2*time.Hour), stale}, nil,
			"no manager leads: b, which holds the lease tidekeeper, has not renewed it for 1h0m0s (namespace tidekeeper-system)"},
		{"released", []coordinationv1.Lease{held("ops", "", time.Second)}, nil, "no manager leads: the lease tidekeeper has had no holder for 1s (namespace ops)"},
		{"no election, all observed", nil, []*tidekeeperv1.NodePool{pool("p", 2, 2, time.Hour, time.Hour)}, ""},
		{"no election, just edited", nil, []*tidekeeperv1.NodePool{pool("p", 2, 1, time.Hour, time.Second)}, ""},
		{"no election, never observed", nil, []*tidekeeperv1.NodePool{pool("p", 1, 0, time.Hour, time.Hour)},
			"no manager has observed NodePool p for 60m"},
		{"no election, edited", nil, []*tidekeeperv1.NodePool{pool("p", 2, 1, time.Hour, time.Minute), pool("q", 3, 1, 2*time.Hour, 30*time.Minute)},
			"no manager has observed NodePool q and 1 other for 30m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var u Unobserved
			for _, p := range tt.pools {
				u.Add("NodePool", p, p.Status.ObservedGeneration, now)
			}
			if got := Outdated(ManagerOf(tt.leases, now), u, now); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLeadingSince checks that a leader counts as leading since it acquired its lease, and that a
// manager is assumed to start now if none is running.
func TestLeadingSince(t *testing.T) {
	acquired, renewed := &metav1.MicroTime{Time: noon.Add(-time.Hour)}, func(ago time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: noon.Add(-ago)} }
	lease := func(spec coordinationv1.LeaseSpec) []coordinationv1.Lease {
		spec.HolderIdentity, spec.LeaseDurationSeconds = new("a"), new(int32(15))
		return []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "tidekeeper"}, Spec: spec}}
	}
	for _, tt := range []struct {
		name   string
		leases []coordinationv1.Lease
		lost   int
		want   time.Time
	}{
		{"a leader", lease(coordinationv1.LeaseSpec{AcquireTime: acquired, RenewTime: renewed(time.Second)}), 0, acquired.Time},
		{"a leader, and since when is unknown", lease(coordinationv1.LeaseSpec{RenewTime: renewed(time.Second)}), 0, time.Time{}},
		{"none leads", lease(coordinationv1.LeaseSpec{AcquireTime: acquired, RenewTime: renewed(time.Hour)}), 0, noon},
		{"no lease, and a tick that no manager has observed", nil, 1, noon},
		{"no lease, and nothing that waits", nil, 0, time.Time{}},
	} {
		if got := LeadingSince(ManagerOf(tt.leases, noon), Unobserved{Count: tt.lost, Oldest: "ScheduledRestart web", Since: noon.Add(-time.Minute)}, noon); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestUnobservedRestarts checks that, without a lease, an unobserved edit, request or tick of a
// ScheduledRestart is evidence that no manager is running. A tick or request that the status
// reports as waiting is no evidence.
func TestUnobservedRestarts(t *testing.T) {
	ago := func(d time.Duration) *metav1.Time { return at(noon.Add(-d)) }
	ready := func(r *tidekeeperv1.ScheduledRestart, reason string) {
		r.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason}}
	}
	requested := func(r *tidekeeperv1.ScheduledRestart) {
		r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: ago(82 * time.Second).UTC().Format(time.RFC3339)}
	}
	for _, tc := range []struct {
		name   string
		change func(*tidekeeperv1.ScheduledRestart)
		want   string
	}{
		{"all is decided", func(*tidekeeperv1.ScheduledRestart) {}, ""},
		{"an edit", func(r *tidekeeperv1.ScheduledRestart) {
			r.Generation = 2
			r.ManagedFields = []metav1.ManagedFieldsEntry{{Time: ago(82 * time.Second)}}
		}, "no manager has observed ScheduledRestart web for 82s"},
		{"a request", requested, "no manager has observed ScheduledRestart web for 82s"},
		{"a request that waits", func(r *tidekeeperv1.ScheduledRestart) {
			requested(r)
			r.Status.PendingRequestTime = ago(82 * time.Second)
		}, ""},
		{"a request that is served", func(r *tidekeeperv1.ScheduledRestart) {
			requested(r)
			r.Status.Active = &tidekeeperv1.ActiveRestart{Trigger: tidekeeperv1.TriggerRequest, ScheduledTime: *ago(82 * time.Second)}
		}, ""},
		{"a tick", func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextScheduleTime = ago(5 * time.Minute) }, "no manager has observed ScheduledRestart web for 5m"},
		{"a tick that is due just now", func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextScheduleTime = ago(time.Second) }, ""},
		{"a tick that waits", func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime = ago(5 * time.Minute)
			ready(r, tidekeeperv1.ReasonFrozen)
		}, ""},
	} {
		r := aRestart("web", "@daily", func(r *tidekeeperv1.ScheduledRestart) {
			r.Generation, r.Status.ObservedGeneration, r.CreationTimestamp = 1, 1, *ago(time.Hour)
			ready(r, tidekeeperv1.ReasonScheduled)
			r.Status.NextScheduleTime = at(noon.Add(time.Hour))
		}, tc.change)
		var u Unobserved
		u.AddRestart(&r, noon)
		if got := u.Message(noon); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestNotRunning checks that a controller is reported as not running only if the leader is known not to
// run it.
func TestNotRunning(t *testing.T) {
	publishes := func(holder string, settings map[string]string) Manager {
		held := coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Labels: lease.Labels("a", settings)},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: noon}},
		}
		return ManagerOf([]coordinationv1.Lease{held}, noon)
	}
	for name, tc := range map[string]struct {
		manager Manager
		want    bool
	}{
		"there is no lease":                {Manager{}, false},
		"it runs":                          {publishes("a", map[string]string{lease.RunsSetting("node-maintenance"): "true"}), false},
		"others run":                       {publishes("a", map[string]string{lease.RunsSetting("nodepool"): "true"}), true},
		"a manager of before":              {publishes("a", map[string]string{"max-concurrent-restarts": "2"}), true},
		"a manager that publishes nothing": {publishes("b", map[string]string{lease.RunsSetting("nodepool"): "true"}), false},
		"no manager leads":                 {publishes("", map[string]string{lease.RunsSetting("nodepool"): "true"}), false},
	} {
		if got := tc.manager.NotRunning("node-maintenance"); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
