// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/controller"
)

// The names of the controllers that watch ConfigMaps and Secrets for the controller
// "scheduled-restart".
const (
	configMapController = "configmap-change"
	secretController    = "secret-change"
)

// ConfigMapController defines the controller "configmap-change".
func ConfigMapController() controller.Definition {
	return configController(configMapController, &corev1.ConfigMap{}, "configmaps", "ConfigMaps")
}

// SecretController defines the controller "secret-change".
func SecretController() controller.Definition {
	return configController(secretController, &corev1.Secret{}, "secrets", "Secrets")
}

// configController defines a controller that only has a kind watched. Its right to read the kind is a
// right of its own, so that an installation that does not need it does not grant it.
func configController(name string, object client.Object, resource, kind string) controller.Definition {
	return controller.Definition{
		Name:         name,
		Purpose:      "Lets ScheduledRestarts restart workloads when the content of the " + kind + " changes that their pods use. Of each " + kind[:len(kind)-1] + " it keeps hashes only.",
		OffByDefault: true,
		Namespaced:   true,
		Watches:      []client.Object{object},
		Rules: []controller.Rule{{
			Resources: []string{resource}, Verbs: []string{"get", "list", "watch"},
			Reason: "Notices that their content changes; from the API server before a workload is restarted for it.",
		}},
		SetupWithManager: func(ctrl.Manager, clock.Clock) error { return nil },
	}
}
