// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Census counts the compared and the excluded objects and fields of a run, for reports.
type Census struct {
	names  Names
	locks  map[string]bool
	judged map[string]*results.Judged
	left   map[results.NotCompared]*results.NotCompared
}

// NewCensus returns an empty census. `names` provides the keys of objects. `locks` is the set of
// keys of objects used for leader election, which count as excluded.
func NewCensus(names Names, locks map[string]bool) *Census {
	return &Census{names: names, locks: locks, judged: map[string]*results.Judged{}, left: map[results.NotCompared]*results.NotCompared{}}
}

// Add counts an object and its fields. It does not count masked fields, which reports list
// individually.
func (c *Census) Add(v *Version, mask *state.Mask) {
	if why := WhyLeftOut(v, c.locks); why != "" {
		what := v.Resource
		if why == OfControlPlane {
			what = v.Object.GetNamespace()
		}
		c.Leave(what, why, 0)
		return
	}
	if c.judged[v.Resource] == nil {
		c.judged[v.Resource] = &results.Judged{Resource: v.Resource}
	}
	kind := c.judged[v.Resource]
	kind.Objects++
	if namespace := v.Object.GetNamespace(); namespace != "" && !slices.Contains(kind.Namespaces, namespace) {
		kind.Namespaces = append(kind.Namespaces, namespace)
		slices.Sort(kind.Namespaces)
	}
	judged := c.names.Fields(v)
	key := c.names.Key(v)
	for path := range judged {
		if !mask.Hides(key, path) {
			kind.Fields++
		}
	}
	type reason struct{ what, why string }
	unseen := map[reason]int{}
	all := state.Flatten(v.Object.Object, func(path string) bool { return path == "metadata.managedFields" })
	for path := range all {
		if _, is := judged[path]; !is {
			what, why := c.names.WhyIgnored(v.Resource, state.AnyIndex(path))
			unseen[reason{what, why}]++
		}
	}
	for r, n := range unseen {
		c.Leave(r.what, r.why, n)
	}
}

// Leave counts an object as excluded from comparisons, entirely or in part. `fields` is the number
// of excluded fields, or 0 if the entire object is excluded. `what` and `why` tell users what is
// excluded, and the reason.
func (c *Census) Leave(what, why string, fields int) {
	key := results.NotCompared{What: what, Why: why}
	if c.left[key] == nil {
		entry := key
		c.left[key] = &entry
	}
	c.left[key].Objects++
	c.left[key].Fields += fields
}

// Scope returns the counts in the form that reports use. `kinds` lists the recorded resources, and
// `never` lists the resources that are never recorded. `mask` contains the fields that differ
// between baseline runs.
func (c *Census) Scope(kinds, never []string, mask *state.Mask) *results.Scope {
	s := &results.Scope{Never: never, Masked: mask.All()}
	for _, resource := range slices.Sorted(maps.Keys(c.judged)) {
		s.Judged = append(s.Judged, *c.judged[resource])
	}
	for _, kind := range kinds {
		if c.judged[kind] == nil {
			s.Others++
		}
	}
	for _, left := range c.left {
		s.NotCompared = append(s.NotCompared, *left)
	}
	slices.SortFunc(s.NotCompared, func(a, b results.NotCompared) int {
		return strings.Compare(fmt.Sprint(a.Fields > 0, a.What, a.Why), fmt.Sprint(b.Fields > 0, b.What, b.Why))
	})
	return s
}
