// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// labelValue is a value of a label on pods of a namespace.
type labelValue struct{ namespace, value string }

// podIndex finds the running pods that a selector may select. Without it, each workload's
// constraints would have to be compared with all pods of its namespace.
type podIndex struct {
	nodes []*node
	// byNamespace contains the running pods by namespace.
	byNamespace map[string][]pod
	// byLabel contains the running pods by the value of a label, for each label key that was asked for.
	byLabel map[string]map[labelValue][]pod
}

// candidates calls f for each running pod that the term may select: those in its namespaces, with
// the label that it requires, if any.
func (x *podIndex) candidates(t *term, f func(pod)) {
	if x.byNamespace == nil {
		x.byNamespace = map[string][]pod{}
		x.each(func(p pod) { x.byNamespace[p.object.Namespace] = append(x.byNamespace[p.object.Namespace], p) })
	}
	key, values := requiredLabel(t.selector)
	var labelled map[labelValue][]pod
	if len(values) > 0 {
		labelled = x.labelled(key)
	}
	visit := func(namespace string) {
		if labelled == nil {
			visitAll(x.byNamespace[namespace], f)
			return
		}
		for _, value := range values {
			visitAll(labelled[labelValue{namespace, value}], f)
		}
	}
	if t.namespaces == nil {
		for namespace := range x.byNamespace {
			visit(namespace)
		}
		return
	}
	for namespace := range t.namespaces {
		visit(namespace)
	}
}

func visitAll(list []pod, f func(pod)) {
	for _, p := range list {
		f(p)
	}
}

// each calls f for each running pod.
func (x *podIndex) each(f func(pod)) {
	for _, n := range x.nodes {
		visitAll(n.pods, f)
	}
}

// labelled returns the running pods by the value of a label.
func (x *podIndex) labelled(key string) map[labelValue][]pod {
	known := x.byLabel[key]
	if known == nil {
		known = map[labelValue][]pod{}
		x.each(func(p pod) {
			if value, has := p.object.Labels[key]; has {
				at := labelValue{p.object.Namespace, value}
				known[at] = append(known[at], p)
			}
		})
		if x.byLabel == nil {
			x.byLabel = map[string]map[labelValue][]pod{}
		}
		x.byLabel[key] = known
	}
	return known
}

// requiredLabel returns a label that a pod must have for the selector to select the pod, and the
// values that it may have. There are no values if the selector requires no such label.
func requiredLabel(selector labels.Selector) (key string, values []string) {
	requirements, _ := selector.Requirements() // A selector that selects nothing has none.
	for i := range requirements {
		switch requirements[i].Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if found := requirements[i].ValuesUnsorted(); values == nil || len(found) < len(values) {
				key, values = requirements[i].Key(), found
			}
		}
	}
	return key, values
}

// label is a label key with one value.
type label struct{ key, value string }

// termIndex finds the distinct anti-affinity terms of running pods that may select a pod.
type termIndex struct {
	// byLabel contains the terms that require a label, by each of the values that it may have.
	byLabel map[label][]*carried
	// others contains the other terms.
	others []*carried
}

func newTermIndex(terms map[string]*carried) *termIndex {
	x := &termIndex{byLabel: map[label][]*carried{}}
	for _, t := range terms {
		key, values := requiredLabel(t.selector)
		if len(values) == 0 {
			x.others = append(x.others, t)
		}
		for _, value := range values {
			x.byLabel[label{key, value}] = append(x.byLabel[label{key, value}], t)
		}
	}
	return x
}

// candidates calls f for each term that may select a pod with the given labels.
func (x *termIndex) candidates(of map[string]string, f func(*carried)) {
	for _, t := range x.others {
		f(t)
	}
	for key, value := range of {
		for _, t := range x.byLabel[label{key, value}] {
			f(t)
		}
	}
}
