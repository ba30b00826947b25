// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// shape is what a node has, or what a pool wants, by places like "label
// example.com/size" and "taint example.com/pool:NoSchedule".
type shape map[string]string

// shapeOf returns what a node has, without Tidekeeper's own record.
func shapeOf(node *corev1.Node) shape {
	s := shape{}
	for key, value := range node.Labels {
		s["label "+key] = value
	}
	for key, value := range node.Annotations {
		if key != tidekeeperv1.OwnershipAnnotation {
			s["annotation "+key] = value
		}
	}
	for _, taint := range node.Spec.Taints {
		s[fmt.Sprintf("taint %s:%s", taint.Key, taint.Effect)] = taint.Value
	}
	return s
}

// asked returns what a pool wants.
func asked(pool *tidekeeperv1.NodePool) shape {
	s := shape{}
	for key, value := range pool.Spec.Labels {
		s["label "+key] = string(value)
	}
	for key, value := range pool.Spec.Annotations {
		s["annotation "+key] = string(value)
	}
	for _, taint := range pool.Spec.Taints {
		s[fmt.Sprintf("taint %s:%s", taint.Key, taint.Effect)] = string(taint.Value)
	}
	return s
}

// covers reports whether s contains all of another shape.
func (s shape) covers(other shape) bool {
	for place, value := range other {
		if is, ok := s[place]; !ok || is != value {
			return false
		}
	}
	return true
}

// places returns the places of s that have a different value in another shape, sorted.
func (s shape) places(other shape) []string {
	var differ []string
	for _, place := range slices.Sorted(maps.Keys(s)) {
		if is, ok := other[place]; !ok || is != s[place] {
			differ = append(differ, place)
		}
	}
	return differ
}

// ofKubernetes reports whether a place belongs to Kubernetes' own controllers.
func ofKubernetes(place string) bool {
	_, key, _ := strings.Cut(place, " ")
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kubernetes.io" || domain == "k8s.io" || strings.HasSuffix(domain, ".kubernetes.io") && domain != "node-role.kubernetes.io" || strings.HasSuffix(domain, ".k8s.io")
}

// member reports whether a node is a member of a pool.
func member(pool *tidekeeperv1.NodePool, node *corev1.Node) bool {
	if pool.Spec.Selector == nil {
		_, ok := node.Labels[tidekeeperv1.RoleLabelPrefix+pool.Name]
		return ok
	}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{}}
	for key, value := range pool.Spec.Selector.MatchLabels {
		selector.MatchLabels[key] = string(value)
	}
	for _, e := range pool.Spec.Selector.MatchExpressions {
		r := metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator}
		for _, value := range e.Values {
			r.Values = append(r.Values, string(value))
		}
		selector.MatchExpressions = append(selector.MatchExpressions, r)
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && s.Matches(labels.Set(node.Labels))
}

// pools are the pools that exist at a moment of a history, by name.
type pools map[string]*tidekeeperv1.NodePool

func (p pools) see(e *Event) {
	if pool, ok := e.Object.(*tidekeeperv1.NodePool); ok {
		if p[pool.Name] = pool; e.Type == watch.Deleted {
			delete(p, pool.Name)
		}
	}
}

// written calls a function for each change of a node that was not made by a user.
func (h History) written(see func(e *Event), change func(e *Event, before, after *corev1.Node)) {
	for i := range h {
		e := &h[i]
		if see != nil {
			see(e)
		}
		after, ok := e.Object.(*corev1.Node)
		if !ok || e.ByUser || e.Type == watch.Deleted || e.Before == nil {
			continue
		}
		change(e, e.Before.(*corev1.Node), after)
	}
}

// theirsStays: only users change what no pool has ever wanted.
func theirsStays(h History) (broken []string) {
	ours := map[string]bool{}
	see := func(e *Event) {
		if pool, ok := e.Object.(*tidekeeperv1.NodePool); ok {
			for place := range asked(pool) {
				ours[place] = true
			}
		}
	}
	h.written(see, func(e *Event, before, after *corev1.Node) {
		was, is := shapeOf(before), shapeOf(after)
		for _, place := range append(was.places(is), is.places(was)...) {
			if !ours[place] && !ofKubernetes(place) {
				broken = append(broken, fmt.Sprintf("%s: %s, which no pool asks for, was %q and is %q", e, place, was[place], is[place]))
			}
		}
	})
	return broken
}

// recorded: every setting on a node is in the record from the moment it is there.
func recorded(h History) (broken []string) {
	h.written(nil, func(e *Event, before, after *corev1.Node) {
		was, is := shapeOf(before), shapeOf(after)
		record := recordOf(after)
		for _, place := range is.places(was) {
			if !ofKubernetes(place) && !record[place+"="+is[place]] {
				broken = append(broken, fmt.Sprintf("%s: %s=%q was put there, and is not on record: %s", e, place, is[place], after.Annotations[tidekeeperv1.OwnershipAnnotation]))
			}
		}
		// The record must not be ahead either: its settings must be on the node.
		old := recordOf(before)
		for entry := range record {
			place, value, _ := strings.Cut(entry, "=")
			if there, ok := is[place]; !old[entry] && (!ok || there != value) {
				broken = append(broken, fmt.Sprintf("%s: %s=%q came on record, and is not there", e, place, value))
			}
		}
	})
	return broken
}

// recordOf returns "place=value" for each setting in the record.
func recordOf(node *corev1.Node) map[string]bool {
	var stored map[string]map[string]map[string]string
	_ = json.Unmarshal([]byte(node.Annotations[tidekeeperv1.OwnershipAnnotation]), &stored)
	all := map[string]bool{}
	for _, holding := range stored {
		for kind, entries := range holding {
			for key, value := range entries {
				all[strings.TrimSuffix(kind, "s")+" "+key+"="+value] = true
			}
		}
	}
	return all
}

// shapeKept: a member keeps the settings that its pool wants until the spec, the
// membership or a user changes them.
func shapeKept(h History) (broken []string) {
	there := pools{}
	h.written(there.see, func(e *Event, before, after *corev1.Node) {
		was, is := shapeOf(before), shapeOf(after)
		for _, name := range slices.Sorted(maps.Keys(there)) {
			pool := there[name]
			if !pool.DeletionTimestamp.IsZero() || !member(pool, before) || !member(pool, after) {
				continue
			}
			for _, place := range asked(pool).places(is) {
				if was[place] == asked(pool)[place] && !there.elderAsks(pool, place, after) {
					broken = append(broken, fmt.Sprintf("%s: it had %s=%q, which pool %s asks for, and has lost it", e, place, was[place], name))
				}
			}
		}
	})
	return broken
}

// elderAsks reports whether a pool that takes precedence over another one wants the
// same place on a node.
func (p pools) elderAsks(pool *tidekeeperv1.NodePool, place string, node *corev1.Node) bool {
	for _, other := range p {
		older := other.CreationTimestamp.Before(&pool.CreationTimestamp) ||
			other.CreationTimestamp.Equal(&pool.CreationTimestamp) && other.Name < pool.Name
		if _, asks := asked(other)[place]; asks && older && other.Name != pool.Name && member(other, node) {
			return true
		}
	}
	return false
}

// healthyIsTrue: if a pool reports that it is healthy for a generation with n nodes,
// then n nodes have been members with everything that this generation wants. The pool
// need not know yet what happened to them a moment ago.
func healthyIsTrue(h History) (broken []string) {
	versions := map[string][]*corev1.Node{}
	for i := range h {
		e := &h[i]
		switch o := e.Object.(type) {
		case *corev1.Node:
			versions[o.Name] = append(versions[o.Name], o)
		case *tidekeeperv1.NodePool:
			ready := condition(o.Status.Conditions, "Ready")
			if e.Type == watch.Deleted || ready == nil || ready.Reason != "Healthy" || ready.ObservedGeneration != o.Generation {
				continue
			}
			inShape := 0
			for _, of := range versions {
				if slices.ContainsFunc(of, func(node *corev1.Node) bool { return member(o, node) && shapeOf(node).covers(asked(o)) }) {
					inShape++
				}
			}
			if inShape < int(o.Status.NodeCount) {
				broken = append(broken, fmt.Sprintf("%s: it counts %d nodes, of which %d have ever been as it asks", e, o.Status.NodeCount, inShape))
			}
		}
	}
	return broken
}

func condition(conditions []metav1.Condition, of string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == of {
			return &conditions[i]
		}
	}
	return nil
}

// cleanBeforeGone: when a pool is gone, no node has it in its record.
func cleanBeforeGone(h History) (broken []string) {
	nodes := map[string]*corev1.Node{}
	for i := range h {
		e := &h[i]
		switch o := e.Object.(type) {
		case *corev1.Node:
			if nodes[o.Name] = o; e.Type == watch.Deleted {
				delete(nodes, o.Name)
			}
		case *tidekeeperv1.NodePool:
			if e.Type != watch.Deleted {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(nodes)) {
				var record map[string]any
				_ = json.Unmarshal([]byte(nodes[name].Annotations[tidekeeperv1.OwnershipAnnotation]), &record)
				if _, held := record[o.Name]; held {
					broken = append(broken, fmt.Sprintf("%s: node %s still has it on record", e, name))
				}
			}
		}
	}
	return broken
}
