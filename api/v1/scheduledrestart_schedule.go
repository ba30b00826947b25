// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// GetSchedule returns the schedule, [DefaultSchedule] if nothing triggers restarts otherwise,
// and "" if something else does.
func (s *ScheduledRestartSpec) GetSchedule() CronExpression {
	if s.Schedule == "" && s.MaxPodAgeSeconds == 0 && s.OnConfigChange == "" {
		return DefaultSchedule
	}
	return s.Schedule
}

// GetMaxPodAge returns how old a pod may become; 0 means that there is no limit.
func (s *ScheduledRestartSpec) GetMaxPodAge() time.Duration {
	return time.Duration(s.MaxPodAgeSeconds) * time.Second
}
