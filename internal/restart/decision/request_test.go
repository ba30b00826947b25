// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestRequest checks restarts that are requested by the annotation.
func TestRequest(t *testing.T) {
	check(t, []row{
		{
			name: "a request is one more tick", in: makeInputs(now("02:00:05"), requestAt("02:00:00")),
			send: at("02:00:00"), active: true, ready: "True/Restarting", next: at("03:00:00"), wake: at("02:30:05"),
		},
		{
			name: "a request is served once", in: makeInputs(now("02:00:05"), requestAt("02:00:00"), func(in *Input) { in.Restart.Status.LastRequestTime = metaAt("02:00:00") }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
		{
			name: "a request for later is waited for", in: makeInputs(now("02:00:05"), requestAt("02:30:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("02:30:00"),
		},
		{
			name: "a request is served while the schedule is suspended",
			in:   makeInputs(now("02:00:05"), requestAt("02:00:00"), withSpec(suspended), func(in *Input) { in.Restart.Status.NextScheduleTime = nil }),
			send: at("02:00:00"), active: true, ready: "True/Restarting", wake: at("02:30:05"),
		},
		{
			name: "an old request is missed", in: makeInputs(now("02:30:00"), requestAt("02:00:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"), records: []string{"Missed DeadlineExceeded 02:00:00"},
		},
		{
			name: "one restart serves a request and a tick", in: makeInputs(requestAt("02:59:00")),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
			records: []string{"Skipped Superseded 02:59:00"},
		},
		{
			name: "a request that is withdrawn is recorded", in: makeInputs(now("02:00:05"), func(in *Input) { in.Restart.Status.PendingRequestTime = metaAt("02:00:00") }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"), records: []string{"Skipped Withdrawn 02:00:00"},
		},
		{
			name: "a request that is overwritten is recorded",
			in:   makeInputs(now("02:00:05"), requestAt("02:00:03"), func(in *Input) { in.Restart.Status.PendingRequestTime = metaAt("02:00:00") }),
			send: at("02:00:03"), active: true, ready: "True/Restarting", next: at("03:00:00"), wake: at("02:30:05"), records: []string{"Skipped Superseded 02:00:00"},
		},
		{
			name:  "a waiting request does not affect a tick",
			in:    makeInputs(requestAt("03:00:01"), withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "True/TargetPaused", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a request before 1970 is ignored", in: makeInputs(now("02:00:05"), func(in *Input) {
				in.Restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: "0000-01-01T00:00:00+23:59"}
			}),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
		{
			name: "a request that is not a time is ignored", in: makeInputs(now("02:00:05"), func(in *Input) {
				in.Restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: "now"}
			}),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
	})
}
