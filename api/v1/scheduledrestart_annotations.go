// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Annotations that people and programs write.
const (
	// OptInAnnotation on a Deployment, StatefulSet or DaemonSet, with the value
	// "true", makes a ScheduledRestart of the same name for it.
	OptInAnnotation = "tidekeeper.dev/scheduled-restart"

	// OptInScheduleAnnotation beside OptInAnnotation sets the schedule, and
	// starts the ScheduledRestart enabled.
	OptInScheduleAnnotation = "tidekeeper.dev/restart-schedule"

	// OptInTimeZoneAnnotation beside OptInAnnotation sets the time zone.
	OptInTimeZoneAnnotation = "tidekeeper.dev/restart-time-zone"

	// AppliedAnnotation on a ScheduledRestart says that an opt-in made it, and
	// which annotations of the workload it follows, as JSON.
	AppliedAnnotation = "tidekeeper.dev/opt-in-applied"

	// RestartNowAnnotation on a ScheduledRestart asks for a restart at the time
	// that it holds (RFC 3339), once.
	RestartNowAnnotation = "tidekeeper.dev/restart-now"

	// RestartedAtAnnotation on a pod template is what kubectl rollout restart
	// writes, and so do we, with the time of the tick.
	RestartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

	// LastTickAnnotation on a workload is the last tick that was sent to it,
	// written in the same patch as the template. It tells, also after the
	// template was set back, that the tick was served.
	LastTickAnnotation = "tidekeeper.dev/last-restart-tick"
)
