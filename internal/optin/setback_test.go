// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestSetBack checks that setBack describes every reverted field that another client has changed,
// but not fields that changed because of the annotations.
func TestSetBack(t *testing.T) {
	const record = `{"schedule":"0 3 * * *","timeZone":"UTC","maxPodAgeSeconds":86400,"suspend":false}`
	annotations := func(schedule string) map[string]string {
		a := in("true")
		a[scheduleKey], a[zoneKey], a[ageKey] = schedule, "UTC", "86400"
		return a
	}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		change      func(*tidekeeperv1.ScheduledRestartSpec)
		want        string
	}{
		{"nothing", annotations("0 3 * * *"), func(*tidekeeperv1.ScheduledRestartSpec) {}, ""},
		{"what no annotation names", annotations("0 3 * * *"), func(s *tidekeeperv1.ScheduledRestartSpec) { s.HistoryLimit = 7 }, ""},
		{"the annotation", annotations("0 4 * * *"), func(*tidekeeperv1.ScheduledRestartSpec) {}, ""},
		{
			"the schedule", annotations("0 3 * * *"), func(s *tidekeeperv1.ScheduledRestartSpec) { s.Schedule = "30 2 * * 0" },
			`schedule "30 2 * * 0" was reverted to "0 3 * * *", the value of the annotation tidekeeper.dev/restart-schedule of Deployment web: change or remove the annotation`,
		},
		{
			"time zone and age", annotations("0 3 * * *"), func(s *tidekeeperv1.ScheduledRestartSpec) { s.TimeZone, s.MaxPodAgeSeconds = "Europe/Berlin", 3600 },
			`timeZone "Europe/Berlin" was reverted to "UTC", the value of the annotation tidekeeper.dev/restart-time-zone of Deployment web: change or remove the annotation; ` +
				`maxPodAgeSeconds 3600 was reverted to 86400, the value of the annotation tidekeeper.dev/restart-max-pod-age-seconds of Deployment web: change or remove the annotation`,
		},
		{
			"the target", annotations("0 3 * * *"), func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Name = "api" },
			`targetRef Deployment api was reverted to Deployment web, the value of the annotation tidekeeper.dev/scheduled-restart of Deployment web: change or remove the annotation`,
		},
	} {
		existing := Made(record).Obj()
		existing.Spec.Schedule, existing.Spec.TimeZone, existing.Spec.MaxPodAgeSeconds = "0 3 * * *", "UTC", 86400
		tc.change(&existing.Spec)
		d := decide(workload.Deployment, web(tc.annotations), existing)
		if got := setBack(&d); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
