// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Annotations that users and programs write.
const (
	// OptInAnnotation on a Deployment, StatefulSet or DaemonSet, with the value
	// "true", creates a ScheduledRestart for it, of the same name if that is free.
	OptInAnnotation = "tidekeeper.dev/scheduled-restart"

	// OptInScheduleAnnotation, together with OptInAnnotation, sets the schedule, and the
	// ScheduledRestart is not suspended.
	OptInScheduleAnnotation = "tidekeeper.dev/restart-schedule"

	// OptInTimeZoneAnnotation, together with OptInAnnotation, sets the time zone.
	OptInTimeZoneAnnotation = "tidekeeper.dev/restart-time-zone"

	// OptInMaxPodAgeAnnotation, together with OptInAnnotation, sets maxPodAgeSeconds, and the
	// ScheduledRestart is not suspended.
	OptInMaxPodAgeAnnotation = "tidekeeper.dev/restart-max-pod-age-seconds"

	// AppliedAnnotation on a ScheduledRestart says that an opt-in created it, and
	// which annotations of the workload it follows, as JSON.
	AppliedAnnotation = "tidekeeper.dev/opt-in-applied"

	// RestartNowAnnotation on a ScheduledRestart requests one restart at the time that is
	// its value (RFC 3339).
	RestartNowAnnotation = "tidekeeper.dev/restart-now"

	// RestartedAtAnnotation on a pod template is the annotation that kubectl rollout restart
	// writes. Tidekeeper writes the time of the tick there.
	RestartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

	// LastTickAnnotation on a workload is the last tick that was sent to it,
	// written in the same patch as the template. It shows that the tick was served even
	// after the template was reverted.
	LastTickAnnotation = "tidekeeper.dev/last-restart-tick"
)
