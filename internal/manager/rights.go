// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/kube/lease"
)

// The rights of a controller are in its definition; the rights below are the manager's own.
// make generate writes all of them to config/rbac: a ClusterRole for each controller, with its
// name, so that an installation without a controller grants no rights for it. A black-box test
// compares them with the requests that the manager sends.
//
// For a watched kind, the verb list is for API servers that do not stream their lists to
// watches. The rights to check clients of /metrics are in config/rbac/metrics_auth_role.yaml
// instead, because metrics may be served without authorization.

// EventRules are the rights that every controller needs in addition to its own.
func EventRules() []controller.Rule {
	return []controller.Rule{{
		Group: "events.k8s.io", Resources: []string{"events"}, Verbs: []string{"create", "patch"},
		Reason: "Creates events, and patches the series of an event that is repeated. Events about a NodePool or a Freeze, which are not namespaced, are in the namespace default.",
	}}
}

// LeaseRules are the rights that leader election needs, in the namespace of the manager.
func LeaseRules() []controller.Rule {
	return []controller.Rule{
		{
			Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: []string{"create"},
			Reason: "Creates the lease. A right to create cannot be limited to a name, because the name is not known yet then.",
		},
		{
			Group: "coordination.k8s.io", Resources: []string{"leases"}, Names: []string{lease.Name}, Verbs: []string{"get", "update"},
			Reason: "Acquires, renews and releases the lease.",
		},
		{
			Resources: []string{"events"}, Verbs: []string{"create"},
			Reason: "Records who leads in an event about the lease, which still uses the old event API.",
		},
	}
}
