// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// settingPrefix begins the labels of the lease that publish settings of the manager that leads:
// behind it comes the name of the flag. Users who may read the lease need not guess them.
const settingPrefix = "settings.tidekeeper.dev/"

// Labels returns the labels of the lease that publish some settings, by the names of their flags.
// A value that cannot be that of a label is left out.
func Labels(settings map[string]string) map[string]string {
	labels := map[string]string{}
	for name, value := range settings {
		if len(validation.IsValidLabelValue(value)) == 0 {
			labels[settingPrefix+name] = value
		}
	}
	return labels
}

// Settings returns the settings that a lease publishes, by the names of their flags.
func Settings(l *coordinationv1.Lease) map[string]string {
	settings := map[string]string{}
	for key, value := range l.Labels {
		if name, ok := strings.CutPrefix(key, settingPrefix); ok {
			settings[name] = value
		}
	}
	return settings
}
