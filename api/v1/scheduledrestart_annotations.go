// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Annotations that users and programs may set or read.
const (
	// OptInAnnotation on a Deployment, StatefulSet or DaemonSet, with the value "true", creates
	// a ScheduledRestart for the workload, with the same name unless that name is taken.
	OptInAnnotation = "tidekeeper.dev/scheduled-restart"

	// OptInScheduleAnnotation, together with OptInAnnotation, sets the schedule, and creates
	// the ScheduledRestart unsuspended.
	OptInScheduleAnnotation = "tidekeeper.dev/restart-schedule"

	// OptInTimeZoneAnnotation, together with OptInAnnotation, sets the time zone.
	OptInTimeZoneAnnotation = "tidekeeper.dev/restart-time-zone"

	// OptInMaxPodAgeAnnotation, together with OptInAnnotation, sets maxPodAgeSeconds, and
	// creates the ScheduledRestart unsuspended.
	OptInMaxPodAgeAnnotation = "tidekeeper.dev/restart-max-pod-age-seconds"

	// AppliedAnnotation on a ScheduledRestart marks it as created by an opt-in, and records as
	// JSON which annotations of the workload the ScheduledRestart follows.
	AppliedAnnotation = "tidekeeper.dev/opt-in-applied"

	// RestartNowAnnotation on a ScheduledRestart requests one restart. Its value is the time of
	// the request (RFC 3339).
	RestartNowAnnotation = "tidekeeper.dev/restart-now"

	// RestartedAtAnnotation on a pod template is the annotation that kubectl rollout restart
	// writes. Tidekeeper sets it to the time of the tick.
	RestartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

	// LastTickAnnotation on a workload is the last tick that was sent to the workload, written
	// in the same patch as the template. It proves that the tick was served even after the
	// template was reverted.
	LastTickAnnotation = "tidekeeper.dev/last-restart-tick"
)
