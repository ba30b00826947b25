// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// census counts what is judged of objects, and what is not.
type census struct {
	names  anonymizer
	locks  map[string]bool
	judged map[string]*results.Judged
	left   map[results.NotCompared]*results.NotCompared
}

func newCensus(names anonymizer, locks map[string]bool) *census {
	return &census{names: names, locks: locks, judged: map[string]*results.Judged{}, left: map[results.NotCompared]*results.NotCompared{}}
}

// add counts an object. What is masked of it is counted with what it is masked by.
func (c *census) add(v *Version, mask *state.Mask) {
	if why := whyLeftOut(v, c.locks); why != "" {
		what := v.Resource
		if why == ofControlPlane {
			what = v.Object.GetNamespace()
		}
		c.leave(what, why, 0)
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
	judged := c.names.fields(v)
	key := c.names.key(v)
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
			what, why := c.names.whyIgnored(v.Resource, state.AnyIndex(path))
			unseen[reason{what, why}]++
		}
	}
	for r, n := range unseen {
		c.leave(r.what, r.why, n)
	}
}

// leave notes that something of an object is not compared: a number of fields, or 0 for all of it.
func (c *census) leave(what, why string, fields int) {
	key := results.NotCompared{What: what, Why: why}
	if c.left[key] == nil {
		entry := key
		c.left[key] = &entry
	}
	c.left[key].Objects++
	c.left[key].Fields += fields
}

// whyIgnored says to what a field belongs that is not compared, and why it is not.
func (a anonymizer) whyIgnored(resource, path string) (what, why string) {
	for _, u := range a.unjudged {
		if resourceIs(resource, u.Resource) && state.Within(u.Path, path) {
			return resource + " " + u.Path, "the workload says so (unjudged)"
		}
	}
	switch {
	case strings.HasSuffix(path, "annotations."+touchedAnnotation):
		return "annotations " + touchedAnnotation, "explore wrote them"
	case slices.Contains(ofKubelets, resource) && state.Within("status", path):
		return "the status of " + resource, "what kubelets and the control plane write of it"
	case slices.ContainsFunc(ignored, func(p string) bool { return state.Within(p, path) }):
		return "metadata of all objects", "UIDs, times, versions, generations and names are others in each run"
	}
	return "fields of " + resource, "the control plane sets them, or they are others in each run"
}

// scope is what was counted: of kinds recorded and never recorded, and with what is masked.
func (c *census) scope(kinds, never []string, mask *state.Mask) *results.Scope {
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

// scope says by what faults are judged: by the objects that there were in the steps of an
// undisturbed run, but for what differs between such runs.
func (b *Baseline) scope(o *Outcome, broken []string) *results.Scope {
	mask := state.NewMask()
	mask.Add(b.masked()...)
	last := map[string]*Version{}
	for i := range o.Steps {
		for j := range o.Steps[i].Objects {
			v := &o.Steps[i].Objects[j]
			last[v.key()] = v
		}
	}
	c := newCensus(b.names, b.Locks)
	for _, key := range slices.Sorted(maps.Keys(last)) {
		c.add(last[key], mask)
	}
	s := c.scope(o.Kinds, o.Never, mask)
	for _, key := range slices.Sorted(maps.Keys(b.Uncounted)) {
		s.Besides = append(s.Besides, key+", how often it is created and deleted: it "+differsUndisturbed)
	}
	for _, line := range broken {
		s.Besides = append(s.Besides, "reported once, and not with a fault as well: "+line)
	}
	if !b.MakesPods {
		s.Besides = append(s.Besides, "how often pods are created and deleted: the operator makes none itself")
	}
	return s
}

// Scope says by what a session is judged, beside what others leave out and mask: nil leaves out
// nothing.
func (s *Session) Scope(leaveOut func(resource string, object *unstructured.Unstructured) bool, history string, mask *state.Mask) *results.Scope {
	c := newCensus(anonymizer{}, s.run.log.lockKeys())
	objects := s.run.recorder.objects()
	for i := range objects {
		if v := &objects[i]; leaveOut(v.Resource, v.Object) {
			c.leave(v.Resource, history, 0)
		} else {
			c.add(v, mask)
		}
	}
	return c.scope(s.run.recorder.kinds(), s.run.recorder.never, mask)
}
