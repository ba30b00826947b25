// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// settingPrefix is the prefix of the labels of the lease that publish settings of the leader;
	// the flag's name follows. Clients that may read the lease need not guess the settings.
	settingPrefix = "settings.tidekeeper.dev/"

	// publisherLabel is the label of the lease that identifies the publisher of the settings. A
	// manager of a version that publishes none leaves the labels of an earlier leader in place.
	publisherLabel = "tidekeeper.dev/settings-of"
)

// Labels returns the labels of the lease by which the manager with an identity publishes settings, by
// flag name. A value that is not a valid label value is left out.
func Labels(identity string, settings map[string]string) map[string]string {
	labels := map[string]string{publisherLabel: publisher(identity)}
	for name, value := range settings {
		if len(validation.IsValidLabelValue(value)) == 0 {
			labels[settingPrefix+name] = value
		}
	}
	return labels
}

// Settings returns the settings that the holder of a lease publishes, by flag name: none if another
// manager published the labels, or if the lease has no holder.
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

// publisher is the part of the identity of a manager that is unique, and can be the value of a label:
// the UUID behind the name of its host.
func publisher(identity string) string {
	return identity[strings.LastIndex(identity, "_")+1:]
}
