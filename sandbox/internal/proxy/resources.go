// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// discoveryTimeout is the time for which adding a rule waits for an API server that does not respond.
const discoveryTimeout = 3 * time.Second

// catalog has the resources of the API server, as of its last discovery.
type catalog struct {
	config *rest.Config

	mu    sync.Mutex
	known []fault.Request
}

func newCatalog(config *rest.Config) *catalog {
	config = rest.CopyConfig(config)
	config.Timeout = discoveryTimeout
	return &catalog{config: config}
}

// warnings returns a line for each resource in the rules that the API server does not serve: such a rule has
// no effect, unless the resource is installed later. If the API server does not respond, there are no
// warnings.
func (c *catalog) warnings(rules []fault.Rule) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	warnings := c.unknown(rules)
	if len(warnings) == 0 {
		return nil
	}
	// The resources may be new.
	c.refresh()
	if len(c.known) == 0 {
		return nil
	}
	return c.unknown(rules)
}

func (c *catalog) unknown(rules []fault.Rule) []string {
	var warnings []string
	for _, rule := range rules {
		for _, pattern := range rule.Match.UnknownResources(c.known) {
			warnings = append(warnings, fmt.Sprintf("rule %q: the API server has no resource %q", rule.Name, pattern))
		}
	}
	return warnings
}

// refresh discovers the resources. After an error, no resource is known.
func (c *catalog) refresh() {
	c.known = nil
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return
	}
	// Some groups may be missing, for example of an aggregated API server that is down.
	_, lists, _ := client.ServerGroupsAndResources()
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			name, subresource, _ := strings.Cut(resource.Name, "/")
			c.known = append(c.known, fault.Request{
				GroupResource: schema.GroupResource{Group: group.Group, Resource: name},
				Subresource:   subresource,
			})
		}
	}
}
