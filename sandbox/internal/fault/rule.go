// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// Rule defines a fault, the requests or events that it hits, and their occurrences.
type Rule struct {
	// Name identifies the rule in the log and in the API. Defaults to rule-N, with its position in the file.
	Name   string `json:"name" yaml:"name"`
	Match  Match  `json:"match,omitzero" yaml:"match"`
	Events Events `json:"events,omitzero" yaml:"events"`
	// When is a CEL expression over object and old; the rule applies where it is true. For an event, object
	// is its object, and old the object in the previous event of the same watch, or null. For a write, object
	// is the object in the body, null for a deletion, and old the object in the API server before the write,
	// or null.
	When  string `json:"when,omitempty" yaml:"when"`
	Count Count  `json:"count,omitzero" yaml:"count"`
	Fault Fault  `json:"fault" yaml:"fault"`
}

// Match selects requests. A request must match every list that is not empty. It matches a list if it matches
// an entry without "!" (or there is none) and no entry with "!". "*" in an entry matches any characters.
type Match struct {
	// Verbs are verbs of Kubernetes. "watchlist" is a watch that begins with a list, "read" means get, list
	// and watch, "write" means all other verbs.
	Verbs []string `json:"verbs,omitempty" yaml:"verbs"`
	// Resources have the form nodes, deployments.apps, pods/status or */scale. Without a group, any group
	// matches; without a subresource, only the main resource.
	Resources  []string `json:"resources,omitempty" yaml:"resources"`
	Namespaces []string `json:"namespaces,omitempty" yaml:"namespaces"`
	Names      []string `json:"names,omitempty" yaml:"names"`
	UserAgents []string `json:"userAgents,omitempty" yaml:"userAgents"`
	// Paths select requests that are not for a resource, like /readyz or /apis*. Without paths, a rule
	// applies only to requests for resources.
	Paths []string `json:"paths,omitempty" yaml:"paths"`
}

// Events selects events of the watches that Match selects.
type Events struct {
	// Types are types of events. Defaults to ADDED, MODIFIED and DELETED.
	Types      []string `json:"types,omitempty" yaml:"types"`
	Namespaces []string `json:"namespaces,omitempty" yaml:"namespaces"`
	Names      []string `json:"names,omitempty" yaml:"names"`
	// Initial includes the initial events of a streaming list, and the bookmark that ends them.
	Initial bool `json:"initial,omitempty" yaml:"initial"`
}

// Count selects occurrences of the matching requests or events, in the order in which they arrive.
type Count struct {
	// From is the first occurrence that the fault hits. Defaults to 1.
	From int `json:"from,omitempty" yaml:"from"`
	// Every makes the fault hit every n-th occurrence, counted from From. Defaults to 1.
	Every int `json:"every,omitempty" yaml:"every"`
	// Times is the maximum number of injected faults; 0 means unlimited.
	Times int `json:"times,omitempty" yaml:"times"`
}

// Fault is a fault. Kind determines which other fields it may have.
type Fault struct {
	Kind Kind `json:"kind" yaml:"kind"`

	Code       int      `json:"code,omitempty" yaml:"code"`
	Reason     string   `json:"reason,omitempty" yaml:"reason"`
	Message    string   `json:"message,omitempty" yaml:"message"`
	RetryAfter Duration `json:"retryAfter,omitzero" yaml:"retryAfter"`

	For Duration `json:"for,omitzero" yaml:"for"`
	At  string   `json:"at,omitempty" yaml:"at"`

	ResourceVersion string `json:"resourceVersion,omitempty" yaml:"resourceVersion"`
	AsOf            string `json:"asOf,omitempty" yaml:"asOf"`
	Cached          bool   `json:"cached,omitempty" yaml:"cached"`
}

// Duration is a duration in the form 2s or 1m30s.
type Duration time.Duration

// UnmarshalYAML decodes a positive duration.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed <= 0 {
		return fmt.Errorf("line %d: %q is not a duration: want one like 2s or 500ms", node.Line, node.Value)
	}
	*d = Duration(parsed)
	return nil
}

// String returns the duration in the form in which it is decoded.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler, for JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Seconds returns the whole seconds.
func (d Duration) Seconds() int { return int(time.Duration(d) / time.Second) }
