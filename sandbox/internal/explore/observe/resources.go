// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// unrecorded lists resources that are excluded from the verdict: Events, Leases, and objects that
// the control plane maintains itself.
var unrecorded = []string{
	"events", "events.events.k8s.io", "leases.coordination.k8s.io",
	"componentstatuses", "leasecandidates.coordination.k8s.io", "csinodes.storage.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io",
	"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "apiservices.apiregistration.k8s.io", "ipaddresses.networking.k8s.io",
	"servicecidrs.networking.k8s.io",
}

// recorded returns the resources to record, keyed by name, like "deployments.apps". `never` lists
// the other resources that have objects.
func recorded(config *rest.Config) (recorded map[string]schema.GroupVersionResource, never []string, err error) {
	lists, _, err := ResourcesOf(config)
	if err != nil {
		return nil, nil, err
	}
	recorded = map[string]schema.GroupVersionResource{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, err
		}
		for _, resource := range list.APIResources {
			name := schema.GroupResource{Group: group.Group, Resource: resource.Name}.String()
			switch {
			case !slices.Contains(resource.Verbs, "list"):
				// Reviews and other resources without a list have no stored objects.
			case !slices.Contains(resource.Verbs, "watch") || slices.Contains(unrecorded, name):
				never = append(never, name)
			default:
				recorded[name] = group.WithResource(resource.Name)
			}
		}
	}
	slices.Sort(never)
	return recorded, slices.Compact(never), nil
}

// ResourcesOf returns an API server's resources. `unserved` lists the API versions whose aggregated
// servers are unavailable.
func ResourcesOf(config *rest.Config) (lists []*metav1.APIResourceList, unserved []string, err error) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	lists, err = discoverer.ServerPreferredResources()
	if unserved, err = UnservedGroups(err); err != nil {
		return nil, nil, fmt.Errorf("ask the API server for its resources: %w", err)
	}
	return lists, unserved, nil
}

// UnservedGroups returns the API versions that a discovery error reports as unavailable, because
// their aggregated servers do not respond. It returns any other error unchanged.
func UnservedGroups(err error) ([]string, error) {
	failed, is := discovery.GroupDiscoveryFailedErrorGroups(err)
	if !is {
		return nil, err
	}
	groups := make([]string, 0, len(failed))
	for group := range failed {
		groups = append(groups, group.String())
	}
	slices.Sort(groups)
	return groups, nil
}
