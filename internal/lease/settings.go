// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// settingPrefix is the prefix of the labels of the lease that publish settings of the leader;
// the flag's name follows. Clients that may read the lease need not guess the settings.
const settingPrefix = "settings.tidekeeper.dev/"

// Labels returns the labels of the lease that publish settings, by flag name. A value that is
// not a valid label value is left out.
func Labels(settings map[string]string) map[string]string {
	labels := map[string]string{}
	for name, value := range settings {
		if len(validation.IsValidLabelValue(value)) == 0 {
			labels[settingPrefix+name] = value
		}
	}
	return labels
}

// Settings returns the settings that a lease publishes, by flag name.
func Settings(l *coordinationv1.Lease) map[string]string {
	settings := map[string]string{}
	for key, value := range l.Labels {
		if name, ok := strings.CutPrefix(key, settingPrefix); ok {
			settings[name] = value
		}
	}
	return settings
}
