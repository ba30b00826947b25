// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// settingPrefix is the prefix of the lease labels through which the leader publishes the values
	// of its flags. It is followed by the name of the flag. Clients that may read the lease can
	// thereby read the leader's settings.
	settingPrefix = "settings.tidekeeper.dev/"

	// publisherLabel is the lease label that identifies the manager that published the settings. It
	// is needed because a manager whose version publishes no settings does not remove an earlier
	// leader's labels.
	publisherLabel = "tidekeeper.dev/settings-of"
)

// Labels returns the lease labels through which the manager with the given identity publishes its
// settings. settings maps flag names to values. Values that are not valid label values are left
// out.
func Labels(identity string, settings map[string]string) map[string]string {
	labels := map[string]string{publisherLabel: publisher(identity)}
	for name, value := range settings {
		if len(validation.IsValidLabelValue(value)) == 0 {
			labels[settingPrefix+name] = value
		}
	}
	return labels
}

// Settings returns the settings published by the lease's holder, keyed by flag name. It returns an
// empty map if the lease has no holder, or if another manager published the labels.
func Settings(l *coordinationv1.Lease) map[string]string {
	settings := map[string]string{}
	if holder := l.Spec.HolderIdentity; holder == nil || *holder == "" || l.Labels[publisherLabel] != publisher(*holder) {
		return settings
	}
	for key, value := range l.Labels {
		if name, ok := strings.CutPrefix(key, settingPrefix); ok {
			settings[name] = value
		}
	}
	return settings
}

// RunsSetting returns the name of the setting by which the leader publishes that it runs a
// controller. Its value is "true".
func RunsSetting(controller string) string { return "runs-" + controller }

// publisher returns the part of a manager's identity that is unique and a valid label value: the
// UUID after the host name.
func publisher(identity string) string {
	return identity[strings.LastIndex(identity, "_")+1:]
}
