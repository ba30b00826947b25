// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Defaults and bounds of a ScheduledRestart, as in the kubebuilder markers of its types. A test
// compares the two.
const (
	// DefaultSchedule is the schedule of a ScheduledRestart with neither a schedule nor another
	// trigger. The CRD does not declare this default, because it depends on other fields.
	DefaultSchedule = "0 0 * * *"
	// DefaultTimeZone is the time zone of a ScheduledRestart that does not set spec.timeZone.
	DefaultTimeZone = "UTC"
	// DefaultTargetAPIVersion is the apiVersion of a [TargetRef] that does not set its
	// apiVersion.
	DefaultTargetAPIVersion = "apps/v1"

	// MaxScheduleLength is the maximum length of spec.schedule.
	MaxScheduleLength = 256
	// MaxTimeZoneLength is the maximum length of spec.timeZone.
	MaxTimeZoneLength = 64
	// MaxDeadlineSeconds is the maximum value of spec.startingDeadlineSeconds,
	// spec.progressDeadlineSeconds and spec.spreadSeconds.
	MaxDeadlineSeconds = 86400
	// MinPodAgeSeconds and MaxPodAgeSeconds are the bounds of spec.maxPodAgeSeconds: five
	// minutes and a year.
	MinPodAgeSeconds = 300
	MaxPodAgeSeconds = 31536000
	// DefaultMinIntervalSeconds and MaxMinIntervalSeconds are the default and the maximum value
	// of spec.minIntervalSeconds: ten minutes and a day.
	DefaultMinIntervalSeconds = 600
	MaxMinIntervalSeconds     = 86400
	// MaxFailureLimit is the maximum value of spec.failureLimit.
	MaxFailureLimit = 100
	// MaxHistoryLimit is the maximum value of spec.historyLimit.
	MaxHistoryLimit = 100
	// MaxRecordMessageLength is the maximum length of the message of a [RestartRecord].
	MaxRecordMessageLength = 1024
	// MaxRefusalLength is the maximum length of status.active.eviction.refused.
	MaxRefusalLength = 512
)

// MaxEarlierTicks is the number at which earlierTicks of a [RestartRecord] stops counting: the
// value then means 1,000 ticks or more.
const MaxEarlierTicks = 1000
