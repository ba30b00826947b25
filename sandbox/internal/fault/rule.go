// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// Rule says which fault happens, to which requests or events, and to which
// occurrence of them.
type Rule struct {
	// Name identifies the rule in the log and in the API. Absent: rule-1 and so
	// on, by its place in the file.
	Name   string `json:"name" yaml:"name"`
	Match  Match  `json:"match,omitzero" yaml:"match"`
	Events Events `json:"events,omitzero" yaml:"events"`
	// When is an expression in CEL over object and old; the rule applies where it is true. For an
	// event they are its object, and that object in its last event in the same watch, or null. For
	// a write they are the object in its body, null for a deletion, and the object in the API
	// server before the write, or null.
	When  string `json:"when,omitempty" yaml:"when"`
	Count Count  `json:"count,omitzero" yaml:"count"`
	Fault Fault  `json:"fault" yaml:"fault"`
}

// Match chooses requests. A request must fit each of the lists that are not empty. It fits a list
// if it fits any entry without "!" (or there is none) and no entry with "!". "*" in an entry stands
// for any characters.
type Match struct {
	// Verbs are verbs of Kubernetes; "watchlist" is a watch that begins with a list, "read" is get,
	// list and watch, "write" is everything else.
	Verbs []string `json:"verbs,omitempty" yaml:"verbs"`
	// Resources are written like nodes, deployments.apps, pods/status or
	// */scale. Without a group, any group matches; without a subresource, only the main
	// resource.
	Resources  []string `json:"resources,omitempty" yaml:"resources"`
	Namespaces []string `json:"namespaces,omitempty" yaml:"namespaces"`
	Names      []string `json:"names,omitempty" yaml:"names"`
	UserAgents []string `json:"userAgents,omitempty" yaml:"userAgents"`
	// Paths choose requests that are not for a resource, like /readyz or
	// /apis*. Without it, a rule applies to requests for resources only.
	Paths []string `json:"paths,omitempty" yaml:"paths"`
}

// Events chooses events of the watches that Match chooses.
type Events struct {
	// Types of events. Absent: ADDED, MODIFIED and DELETED.
	Types      []string `json:"types,omitempty" yaml:"types"`
	Namespaces []string `json:"namespaces,omitempty" yaml:"namespaces"`
	Names      []string `json:"names,omitempty" yaml:"names"`
	// Initial includes the events that are the list at the beginning of a
	// streaming list, and the bookmark that ends it.
	Initial bool `json:"initial,omitempty" yaml:"initial"`
}

// Count chooses among the requests or events that a rule applies to, in the order
// in which they arrive.
type Count struct {
	// From is the first request or event that the fault is injected into. Default 1.
	From int `json:"from,omitempty" yaml:"from"`
	// Every n-th request or event has the fault, from From on. Default 1.
	Every int `json:"every,omitempty" yaml:"every"`
	// Times limits how often the fault is injected; 0 is without a limit.
	Times int `json:"times,omitempty" yaml:"times"`
}

// Fault is an injected fault. The fields that it may have depend on Kind.
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

// Duration is written like 2s or 1m30s.
type Duration time.Duration

// UnmarshalYAML reads a duration that is positive.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed <= 0 {
		return fmt.Errorf("line %d: %q is not a duration: want one like 2s or 500ms", node.Line, node.Value)
	}
	*d = Duration(parsed)
	return nil
}

// String writes it as it is read.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText is String, for JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Seconds returns the whole seconds.
func (d Duration) Seconds() int { return int(time.Duration(d) / time.Second) }
