// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"testing"

	"k8s.io/utils/ptr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// FuzzDecide checks decisions for arbitrary annotations and records: decide must not panic, must
// only write or delete ScheduledRestarts of the opt-in, and must only apply values of the
// annotations.
func FuzzDecide(f *testing.F) {
	for _, value := range []string{"true", "false", "", "TRUE", "\x00"} {
		for _, record := range []string{"", "{}", "null", "[", `{"schedule":"@daily","suspend":false}`, `{"suspend":"yes"}`} {
			f.Add(value, "0 3 * * *", "Europe/Berlin", record, true, true)
		}
	}
	f.Add("true", "0 0 30 2 *", "Local", "{}", false, true)
	f.Add("true", "", "", "{}", true, false)
	f.Add("true", "TZ=UTC @daily", "../../etc/passwd", "\xff", false, false)
	f.Fuzz(func(t *testing.T, value, cron, zone, text string, made, owned bool) {
		existing := MakeRestart()
		if made {
			existing.Record(text)
		}
		if owned {
			existing.Owner("apps/v1", "Deployment", "web", "web-1")
		}
		annotations := in(value)
		if cron != "-" {
			annotations[scheduleKey] = cron
		}
		if zone != "-" {
			annotations[zoneKey] = zone
		}
		o := existing.Obj()
		d := decide(workload.Deployment, web(annotations), o)

		switch d.action {
		case create:
			t.Errorf("it is created although it exists: %s", d.note)
		case update:
			if value != "true" && (value != "false" || !owned) || !made {
				t.Errorf("it is written for the annotation %q; created by an opt-in: %t, owned by the workload: %t", value, made, owned)
			}
			if value == "true" {
				checkApplied(t, &d, cron, zone, o)
			} else if !ptr.Deref(d.apply.Spec.Suspend, true) {
				t.Error("switched off, it is enabled")
			}
		case remove:
			if value == "true" || value == "false" || !made || !owned {
				t.Errorf("it is deleted for the annotation %q; created by an opt-in: %t, owned by the workload: %t", value, made, owned)
			}
		}
		if d := decide(workload.Deployment, web(annotations), nil); d.action == create {
			checkApplied(t, &d, cron, zone, nil)
		}
	})
}

// checkApplied fails the test if the applied values differ from the annotations, or if the applied
// schedule is not valid.
func checkApplied(t *testing.T, d *decision, cron, zone string, existing *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	spec := d.apply.Spec
	expression, name := string(ptr.Deref(spec.Schedule, tidekeeperv1.CronExpression(cron))), ptr.Deref(spec.TimeZone, zone)
	if expression != cron || name != zone {
		t.Errorf("schedule %q in zone %q is applied, but the annotations say %q in %q", expression, name, cron, zone)
	}
	if _, err := schedule.Parse(string(ptr.Deref(spec.Schedule, "@daily")), ptr.Deref(spec.TimeZone, "")); err != nil {
		t.Errorf("the applied schedule is invalid: %v", err)
	}
	if existing != nil && recordOn(existing) == nil && (spec.Suspend == nil || *spec.Suspend != existing.Spec.Suspend) {
		t.Error("a damaged record changed spec.suspend")
	}
}
