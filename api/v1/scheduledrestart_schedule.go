// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// GetSchedule returns spec.schedule. If that is empty it returns [DefaultSchedule], or "" if
// the spec has another trigger: maxPodAgeSeconds or onConfigChange.
func (s *ScheduledRestartSpec) GetSchedule() CronExpression {
	if s.Schedule == "" && s.MaxPodAgeSeconds == 0 && s.OnConfigChange == "" {
		return DefaultSchedule
	}
	return s.Schedule
}

// GetMaxPodAge returns the maximum age of a pod; 0 means that there is no limit.
func (s *ScheduledRestartSpec) GetMaxPodAge() time.Duration {
	return time.Duration(s.MaxPodAgeSeconds) * time.Second
}
