// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestWorkloadChanges checks that only workloads with opt-in annotations, and changes to these
// annotations, trigger a reconcile.
func TestWorkloadChanges(t *testing.T) {
	for _, tt := range []struct {
		name     string
		old, new map[string]string
		want     bool
	}{
		{name: "nothing", old: in("true"), new: in("true")},
		{name: "no opt-in", old: nil, new: map[string]string{"a": "b"}},
		{name: "another annotation", old: in("true"), new: in("true", "deployment.kubernetes.io/revision", "2")},
		{name: "opt-in", old: nil, new: in("true"), want: true},
		{name: "opt-out", old: in("true"), new: nil, want: true},
		{name: "another value", old: in("true"), new: in("false"), want: true},
		{name: "a schedule", old: in("true"), new: in("true", scheduleKey, "@daily"), want: true},
		{name: "an empty zone", old: in("true"), new: in("true", zoneKey, ""), want: true},
	} {
		was, is := deployment(tt.old), deployment(tt.new)
		if got := workloadChanges.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != tt.want {
			t.Errorf("%s: accepted: %t, want %t", tt.name, got, tt.want)
		}
		if got, want := workloadChanges.Create(event.CreateEvent{Object: is}), len(optInOf(is)) > 0; got != want {
			t.Errorf("%s: created, accepted: %t, want %t", tt.name, got, want)
		}
		is.UID = "another"
		if !workloadChanges.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
			t.Errorf("%s: another object with that name is not accepted", tt.name)
		}
		if workloadChanges.Delete(event.DeleteEvent{Object: is}) {
			t.Errorf("%s: its deletion is accepted", tt.name)
		}
	}
}

func TestRestartChanges(t *testing.T) {
	made := func() *RestartMaker { return Made(`{"suspend":true}`) }
	changed := func(m *RestartMaker, change func(*tidekeeperv1.ScheduledRestart)) *RestartMaker {
		change(&m.o)
		return m
	}
	for _, tt := range []struct {
		name     string
		old, new *RestartMaker
		want     bool
	}{
		{name: "nothing", old: made(), new: made()},
		{name: "status", old: made(), new: changed(made(), func(o *tidekeeperv1.ScheduledRestart) {
			o.Status.ObservedGeneration, o.ResourceVersion = 1, "8"
		})},
		{name: "label", old: made(), new: changed(made(), func(o *tidekeeperv1.ScheduledRestart) { o.Labels = map[string]string{"a": "b"} })},
		{name: "spec", old: made(), new: changed(made(), func(o *tidekeeperv1.ScheduledRestart) { o.Generation = 2 }), want: true},
		{name: "record", old: made(), new: made().Record("{}"), want: true},
		{name: "record removed", old: made(), new: made().NoRecord(), want: true},
		{name: "owner", old: made(), new: made().NoOwner(), want: true},
		{name: "replaced", old: made(), new: changed(made(), func(o *tidekeeperv1.ScheduledRestart) { o.UID = "2" }), want: true},
		{name: "spec of a person's", old: MakeRestart(), new: changed(MakeRestart(), func(o *tidekeeperv1.ScheduledRestart) { o.Generation = 2 })},
	} {
		if got := restartChanges.Update(event.UpdateEvent{ObjectOld: tt.old.Obj(), ObjectNew: tt.new.Obj()}); got != tt.want {
			t.Errorf("%s: accepted: %t, want %t", tt.name, got, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		o    *RestartMaker
		want bool
	}{"made": {made(), true}, "a person's": {MakeRestart(), false}} {
		if got := restartChanges.Create(event.CreateEvent{Object: tt.o.Obj()}); got != tt.want {
			t.Errorf("%s: created, accepted: %t, want %t", name, got, tt.want)
		}
		if !restartChanges.Delete(event.DeleteEvent{Object: tt.o.Obj()}) {
			t.Errorf("%s: its deletion, which frees the name, is not accepted", name)
		}
	}
	want := []request{requestFor(workload.Deployment), requestFor(workload.StatefulSet), requestFor(workload.DaemonSet), requestFor(workload.Rollout)}
	sameKind := cmp.Comparer(func(a, b *workload.Kind) bool { return a == b })
	got := workloadsOfRestart(t.Context(), MakeRestart().Obj())
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{}), sameKind); diff != "" {
		t.Errorf("workloads of a ScheduledRestart (-want +got):\n%s", diff)
	}
}
