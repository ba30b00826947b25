// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"testing"

	"k8s.io/utils/ptr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// follow repeatedly applies the decisions for the given annotations to o, as server-side apply
// would, until there is nothing left to do. It returns the number of writes.
func follow(t *testing.T, o *tidekeeperv1.ScheduledRestart, annotations map[string]string) (writes int) {
	t.Helper()
	for ; ; writes++ {
		d := decide(workload.Deployment, web(annotations), o)
		switch {
		case d.action == nothing:
			return writes
		case d.action != update || writes > 2:
			t.Fatalf("%s: %s", d.action, d.note)
		}
		o.Annotations = d.apply.Annotations
		o.Spec.Schedule = ptr.Deref(d.apply.Spec.Schedule, "")
		o.Spec.TimeZone = ptr.Deref(d.apply.Spec.TimeZone, "UTC")
		o.Spec.MaxPodAgeSeconds = ptr.Deref(d.apply.Spec.MaxPodAgeSeconds, 0)
		if d.apply.Spec.Suspend != nil {
			o.Spec.Suspend = *d.apply.Spec.Suspend
		}
	}
}

// TestSwitchedOff checks that switching the opt-in off only suspends the ScheduledRestart, and that
// switching it on again restores the earlier state.
func TestSwitchedOff(t *testing.T) {
	on, scheduled := in("true"), in("true", scheduleKey, "0 3 * * *", zoneKey, "Europe/Berlin")
	for _, tt := range []struct {
		name   string
		start  *RestartMaker
		before func(*tidekeeperv1.ScheduledRestart)
		during func(*tidekeeperv1.ScheduledRestart)
		off    map[string]string
		on     map[string]string
		// suspendOff and suspendOn are the expected values of spec.suspend while the opt-in is
		// switched off, and after it has been switched on again.
		suspendOff, suspendOn bool
		scheduleOn            tidekeeperv1.CronExpression
	}{
		{name: "it ran", start: Made(`{"schedule":"0 3 * * *","timeZone":"Europe/Berlin","suspend":false}`), on: scheduled, suspendOff: true, scheduleOn: "0 3 * * *"},
		{name: "it waited to be enabled", start: Made(`{"suspend":true}`), on: on, suspendOff: true, suspendOn: true, scheduleOn: ""},
		{
			name: "a person had enabled it", start: Made(`{"suspend":true}`), on: on,
			before:     func(o *tidekeeperv1.ScheduledRestart) { o.Spec.Suspend = false },
			suspendOff: true, suspendOn: false, scheduleOn: "",
		},
		{
			name: "a person enables it while it is off", start: Made(`{"suspend":true}`), on: on,
			during:     func(o *tidekeeperv1.ScheduledRestart) { o.Spec.Suspend = false },
			suspendOff: false, suspendOn: false, scheduleOn: "",
		},
		{
			name: "the other annotations are not read while it is off", start: Made(`{"schedule":"0 3 * * *","suspend":false}`),
			off: in("false", scheduleKey, "nonsense"), on: scheduled, suspendOff: true, scheduleOn: "0 3 * * *",
		},
		{name: "on again with a schedule", start: Made(`{"suspend":true}`), on: scheduled, suspendOff: true, suspendOn: false, scheduleOn: "0 3 * * *"},
		{name: "on again without the schedule", start: Made(`{"schedule":"0 3 * * *","suspend":false}`), on: on, suspendOff: true, suspendOn: true, scheduleOn: ""},
		{
			name: "the record is damaged", start: MakeRestart().Record("{").Owner("apps/v1", "Deployment", "web", "web-1").Schedule("0 4 * * *"), on: in("true", scheduleKey, "0 4 * * *"),
			suspendOff: true, scheduleOn: "0 4 * * *",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.start.Obj()
			if tt.before != nil {
				tt.before(o)
			}
			off := tt.off
			if off == nil {
				off = in("false")
			}
			schedule := o.Spec.Schedule
			if writes := follow(t, o, off); writes != 1 {
				t.Errorf("it is switched off in %d writes", writes)
			}
			if tt.during != nil {
				tt.during(o)
				follow(t, o, off)
			}
			if o.Spec.Suspend != tt.suspendOff || o.Spec.Schedule != schedule {
				t.Errorf("while it is off: suspend %t, schedule %q; want %t, %q", o.Spec.Suspend, o.Spec.Schedule, tt.suspendOff, schedule)
			}
			if writes := follow(t, o, tt.on); writes != 1 {
				t.Errorf("it is switched on in %d writes", writes)
			}
			if o.Spec.Suspend != tt.suspendOn || o.Spec.Schedule != tt.scheduleOn {
				t.Errorf("on again: suspend %t, schedule %q; want %t, %q", o.Spec.Suspend, o.Spec.Schedule, tt.suspendOn, tt.scheduleOn)
			}
		})
	}

	// The annotation value "false" must neither create a ScheduledRestart nor change a
	// ScheduledRestart that the opt-in did not create.
	for name, existing := range map[string]*RestartMaker{"none": nil, "a person's": MakeRestart(), "being deleted": Made(`{}`).Deleted()} {
		if d := decide(workload.Deployment, web(in("false")), existing.Obj()); d.action != nothing {
			t.Errorf("%s: %s: %s", name, d.action, d.note)
		}
	}
}
