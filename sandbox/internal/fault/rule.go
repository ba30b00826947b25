// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// Rule selects requests or events, and defines the fault to inject into them.
type Rule struct {
	// Name identifies the rule in the log and in the control API. It defaults to rule-N, where N is
	// the rule's position in the file.
	Name   string `json:"name" yaml:"name"`
	Match  Match  `json:"match,omitzero" yaml:"match"`
	Events Events `json:"events,omitzero" yaml:"events"`
	// When is a CEL expression that must evaluate to true for the rule to apply. Its variables are
	// "object" and "old". For an event, "object" is the event's object, and "old" is the object in
	// the same watch's previous event, or null. For a write, "object" is the object in the request
	// body (null for a deletion), and "old" is the API server's object before the write, or null.
	When  string `json:"when,omitempty" yaml:"when"`
	Count Count  `json:"count,omitzero" yaml:"count"`
	Fault Fault  `json:"fault" yaml:"fault"`
}

// Match selects requests by lists of patterns. A request must match every list that is not empty.
// It matches a list if it matches none of the entries that begin with "!" and, if the list has
// other entries, at least one of these. "*" in an entry matches any characters.
type Match struct {
	// Verbs lists Kubernetes verbs. "watchlist" is a watch that begins with a list, "read" means
	// get, list and watch, and "write" means create, update, patch, delete and deletecollection.
	Verbs []string `json:"verbs,omitempty" yaml:"verbs"`
	// Resources lists resources like nodes, deployments.apps, pods/status or */scale. An entry
	// without a group matches the resource in any group. An entry without a subresource matches
	// only the main resource.
	Resources  []string `json:"resources,omitempty" yaml:"resources"`
	Namespaces []string `json:"namespaces,omitempty" yaml:"namespaces"`
	Names      []string `json:"names,omitempty" yaml:"names"`
	UserAgents []string `json:"userAgents,omitempty" yaml:"userAgents"`
	// Paths lists the paths of non-resource requests, like /readyz or /apis*. Without Paths, a rule
	// applies only to resource requests.
	Paths []string `json:"paths,omitempty" yaml:"paths"`
}

// Events selects events of the watches selected by Match.
type Events struct {
	// Types lists event types. It defaults to ADDED, MODIFIED and DELETED.
	Types      []string `json:"types,omitempty" yaml:"types"`
	Namespaces []string `json:"namespaces,omitempty" yaml:"namespaces"`
	Names      []string `json:"names,omitempty" yaml:"names"`
	// Initial includes the initial events of a streaming list (a watch that begins with a list),
	// and the bookmark that ends these events.
	Initial bool `json:"initial,omitempty" yaml:"initial"`
}

// Count selects some of the matching requests or events by their order of arrival.
type Count struct {
	// From is the number, counted from 1, of the first matching request or event into which the
	// fault is injected. It defaults to 1.
	From int `json:"from,omitempty" yaml:"from"`
	// Every selects every n-th matching request or event, starting with From. It defaults to 1,
	// which selects all of them.
	Every int `json:"every,omitempty" yaml:"every"`
	// Times is the maximum number of faults to inject; 0 means unlimited.
	Times int `json:"times,omitempty" yaml:"times"`
}

// Fault is the fault injected by a rule. Kind determines which other fields are valid.
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

// Duration is a positive duration, written like 2s or 1m30s.
type Duration time.Duration

// UnmarshalYAML decodes a duration, and rejects durations that are not positive.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed <= 0 {
		return fmt.Errorf("line %d: %q is not a duration: want one like 2s or 500ms", node.Line, node.Value)
	}
	*d = Duration(parsed)
	return nil
}

// String formats the duration in the format that UnmarshalYAML accepts.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText encodes the duration as a string like "2s", for JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Seconds returns the duration in seconds, rounded down.
func (d Duration) Seconds() int { return int(time.Duration(d) / time.Second) }
