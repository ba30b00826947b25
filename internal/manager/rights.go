// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/kube/lease"
)

// Each controller declares its rights in its definition. The rights below are the manager's own.
// make generate writes all rights to config/rbac. Each controller has a ClusterRole named after it,
// so that an installation without the controller does not grant its rights. A black-box test
// compares the roles with the requests that the manager sends.
//
// The verb list on a watched kind is needed for API servers that do not support streaming lists.
// The rights to authenticate and authorize clients of /metrics are in
// config/rbac/metrics_auth_role.yaml, because metrics can be served without authorization.

// EventRules returns the rights to create events, which every controller needs.
func EventRules() []controller.Rule {
	return []controller.Rule{{
		Group: "events.k8s.io", Resources: []string{"events"}, Verbs: []string{"create", "patch"},
		Reason: "Creates events, and patches the series of an event that is repeated. Events about a NodePool or a Freeze, which are not namespaced, are in the namespace default.",
	}}
}

// LeaseRules returns the rights that leader election needs in the manager's namespace.
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
