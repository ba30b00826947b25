// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"time"
)

// ConfigChange is which objects restart a workload when their content changes.
type ConfigChange string

const (
	// ConfigMapsOnly means the ConfigMaps that the pods use.
	ConfigMapsOnly ConfigChange = "ConfigMaps"
	// ConfigMapsAndSecrets means the Secrets that the pods use, too.
	ConfigMapsAndSecrets ConfigChange = "ConfigMapsAndSecrets"
)

// GetMinInterval returns the least time between restarts for changes.
func (s *ScheduledRestartSpec) GetMinInterval() time.Duration {
	return time.Duration(cmp.Or(s.MinIntervalSeconds, DefaultMinIntervalSeconds)) * time.Second
}
