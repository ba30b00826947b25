// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"time"
)

// ConfigChange selects the kinds of objects whose content changes restart a workload.
type ConfigChange string

const (
	// ConfigMapsOnly selects the ConfigMaps that the pods use.
	ConfigMapsOnly ConfigChange = "ConfigMaps"
	// ConfigMapsAndSecrets selects the ConfigMaps and the Secrets that the pods use.
	ConfigMapsAndSecrets ConfigChange = "ConfigMapsAndSecrets"
)

// GetMinInterval returns the minimum time between the starts of restarts for changes.
func (s *ScheduledRestartSpec) GetMinInterval() time.Duration {
	return time.Duration(cmp.Or(s.MinIntervalSeconds, DefaultMinIntervalSeconds)) * time.Second
}
