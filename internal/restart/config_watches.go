// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"strings"

	"tidekeeper.dev/tidekeeper/internal/controller"
)

// configWatches returns the optional watches of ConfigMaps and Secrets. Without these watches,
// changes of ConfigMaps and Secrets trigger no restarts.
func configWatches() (all []controller.OptionalWatch) {
	for _, k := range configKinds {
		all = append(all, controller.OptionalWatch{
			Name:    k.resource,
			Purpose: "Restarts workloads when the content of the " + k.name + " changes that their pods use. Of each " + strings.TrimSuffix(k.name, "s") + " it keeps hashes only.",
			Object:  k.object(),
			Rules: []controller.Rule{{
				Resources: []string{k.resource}, Verbs: []string{"get", "list", "watch"},
				Reason: "Notices that their content changes; from the API server before a workload is restarted for it.",
			}},
		})
	}
	return all
}
