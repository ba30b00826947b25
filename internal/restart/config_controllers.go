// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"strings"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/controller"
)

// ConfigControllers define the controllers "configmap-change" and "secret-change", which only have a kind watched
// for the controller "scheduled-restart". The right to read the kind is a right of its own, so that an
// installation that does not need it does not grant it.
func ConfigControllers() (all []controller.Definition) {
	for _, k := range configKinds {
		all = append(all, controller.Definition{
			Name:         k.controller,
			Purpose:      "Lets ScheduledRestarts restart workloads when the content of the " + k.name + " changes that their pods use. Of each " + strings.TrimSuffix(k.name, "s") + " it keeps hashes only.",
			OffByDefault: true,
			Namespaced:   true,
			Watches:      []client.Object{k.object()},
			Rules: []controller.Rule{{
				Resources: []string{k.resource}, Verbs: []string{"get", "list", "watch"},
				Reason: "Notices that their content changes; from the API server before a workload is restarted for it.",
			}},
			SetupWithManager: func(ctrl.Manager, clock.Clock) error { return nil },
		})
	}
	return all
}
