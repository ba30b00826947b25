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

// discoveryTimeout is the maximum time for which adding a rule waits for the resources that the API
// server serves.
const discoveryTimeout = 3 * time.Second

// catalog caches the resources served by the API server.
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

// warnings returns a line for each resource named in rules but not served by the API server. Such a
// rule has no effect until the resource is installed. There are no warnings if the API server does
// not respond.
func (c *catalog) warnings(rules []fault.Rule) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	warnings := c.unknown(rules)
	if len(warnings) == 0 {
		return nil
	}
	// The resources may have been installed since the last discovery.
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

// refresh discovers the resources served by the API server. If discovery fails entirely, the
// catalog is empty.
func (c *catalog) refresh() {
	c.known = nil
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return
	}
	// Ignore the error: it may concern only some API groups, such as the group of an unavailable
	// aggregated API server.
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
