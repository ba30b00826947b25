// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Names of the constraints between pods.
const (
	podAffinity        = "affinity to other pods"
	ownAntiAffinity    = "anti-affinity to other pods"
	othersAntiAffinity = "anti-affinity of other pods"
	topologySpread     = "topology spread constraints"
	hostPorts          = "host ports"
)

// rules holds the constraints between a pod and the other pods of the cluster.
type rules struct {
	ports []hostPort
	// affinity has a counter for each affinity term of the pod. Each counter counts the pods that
	// all of these terms select, as in the scheduler.
	affinity []*counter
	// alone is true if the pod may be placed although no pod matches its affinity terms, because
	// the pod matches them itself.
	alone bool
	anti  []antiRule
	// repelled has a counter for each distinct anti-affinity term of running pods that selects the
	// pod. The counter counts the running pods with that term.
	repelled []*counter
	spreads  []spreadRule
	// unevaluated lists the names of the constraints between pods that are not or only partly
	// evaluated.
	unevaluated []string
}

// antiRule is an anti-affinity term of a pod.
type antiRule struct {
	*counter
	// self is true if the pod matches its own term, so that a topology domain accepts only a single
	// copy of the pod.
	self bool
	// perNode is true if each node forms a separate topology domain.
	perNode bool
}

// spreadRule is a topology spread constraint of a pod.
type spreadRule struct {
	*counter
	maxSkew, minDomains int
	// self is 1 if the constraint's selector selects the pod itself, and 0 otherwise.
	self int
	// grows is true if each placed copy increases the skew: the constraint's selector selects the
	// pod itself and is not empty. An empty selector counts no running pod.
	grows bool
	// perNode is true if each node forms a separate topology domain.
	perNode bool
}

// rulesOf returns the constraints between the example pod and other pods; nil if there are none.
func (r *relations) rulesOf(example *corev1.Pod) *rules {
	found := &rules{ports: hostPortsOf(&example.Spec)}
	r.addAffinity(found, example)
	r.addAntiAffinity(found, example)
	r.addRepelled(found, example)
	r.addSpreads(found, example)
	if len(found.ports)+len(found.affinity)+len(found.anti)+len(found.repelled)+len(found.spreads)+len(found.unevaluated) == 0 {
		return nil
	}
	return found
}

func (r *relations) addAffinity(to *rules, example *corev1.Pod) {
	terms := newTerms(example, affinityOf(example))
	complete := !slices.ContainsFunc(terms, func(t term) bool { return !t.complete })
	to.addUnevaluated(podAffinity, complete)
	if !complete {
		return // Such a term selects too many pods: if it really selects none, it would admit too few nodes.
	}
	to.alone = allMatch(terms, example)
	name := "affinity"
	for _, t := range terms {
		name += "\x00\x00" + t.text
	}
	for i := range terms {
		t := &terms[i]
		to.affinity = append(to.affinity, r.counter(name+"\x00\x00"+t.key, t, counter{attracts: true, selects: func(p pod) bool { return allMatch(terms, p.object) }}))
	}
}

func (r *relations) addAntiAffinity(to *rules, example *corev1.Pod) {
	for _, t := range newTerms(example, antiAffinityOf(example)) {
		to.addUnevaluated(ownAntiAffinity, t.complete)
		if t.complete {
			to.anti = append(to.anti, antiRule{
				counter: r.counter("anti\x00"+t.text, &t, counter{selects: func(p pod) bool { return t.matches(p.object) }}),
				self:    t.matches(example), perNode: r.isUnique(t.key),
			})
		}
	}
}

func (r *relations) addRepelled(to *rules, example *corev1.Pod) {
	if example.Namespace == "" {
		return // A pod that the user describes only by resource amounts has neither a namespace nor labels.
	}
	r.terms().candidates(example.Labels, func(t *carried) {
		switch {
		case !t.matches(example):
		case t.complete:
			to.repelled = append(to.repelled, r.repelling(t))
		case len(antiAffinityOf(example)) == 0:
			to.addUnevaluated(othersAntiAffinity, false)
		}
	})
}

func (r *relations) addSpreads(to *rules, example *corev1.Pod) {
	var keys []string
	for _, c := range example.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			keys = append(keys, c.TopologyKey)
		}
	}
	for i := range example.Spec.TopologySpreadConstraints {
		c := &example.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		rule, complete := r.spreadOf(example, c, keys)
		to.addUnevaluated(topologySpread, complete)
		if complete {
			to.spreads = append(to.spreads, rule)
		}
	}
}

func (r *rules) addUnevaluated(name string, complete bool) {
	if !complete && !slices.Contains(r.unevaluated, name) {
		r.unevaluated = append(r.unevaluated, name)
	}
}

// counters returns the counters that the affinity, anti-affinity and spread rules read.
func (r *rules) counters() []*counter {
	list := slices.Concat(r.affinity, r.repelled)
	for _, a := range r.anti {
		list = append(list, a.counter)
	}
	for _, s := range r.spreads {
		list = append(list, s.counter)
	}
	return list
}

// admits reports whether no constraint rejects the pod on the node. used lists the host ports in use
// on the node. Spread constraints are checked first, because zones are counted in a slice.
func (r *rules) admits(n *node, used []hostPort) bool {
	for i := range r.spreads {
		if !r.spreads[i].admits(n) {
			return false
		}
	}
	return r.lasting(n, used) == ""
}

// lasting returns the name of the constraint that rejects the pod on the node even if other copies of
// the pod are placed, or "" if there is none. used lists the host ports in use on the node.
func (r *rules) lasting(n *node, used []hostPort) string {
	switch {
	case conflict(r.ports, used):
		return hostPorts
	case slices.ContainsFunc(r.anti, func(a antiRule) bool { return a.at(n) > 0 }):
		return ownAntiAffinity
	case slices.ContainsFunc(r.repelled, func(c *counter) bool { return c.at(n) > 0 }):
		return othersAntiAffinity
	case !r.attracts(n):
		return podAffinity
	case slices.ContainsFunc(r.spreads, func(s spreadRule) bool { return !s.has(n) || !s.grows && !s.admits(n) }):
		return topologySpread
	}
	return ""
}

// attracts reports whether the pod's affinity admits the node.
func (r *rules) attracts(n *node) bool {
	matched := true
	for _, c := range r.affinity {
		if !c.has(n) {
			return false
		}
		matched = matched && c.at(n) > 0
	}
	return matched || r.startsGroup()
}

// startsGroup reports whether the pod has affinity to pods like itself, and no such pod exists yet.
// The first of these pods may be placed on any node.
func (r *rules) startsGroup() bool {
	return len(r.affinity) > 0 && r.alone && !slices.ContainsFunc(r.affinity, func(c *counter) bool { return c.total > 0 })
}

// admits reports whether placing the pod on the node keeps the skew within maxSkew.
func (s *spreadRule) admits(n *node) bool {
	return s.has(n) && s.at(n)+s.self-s.least(s.minDomains) <= s.maxSkew
}

// single returns the name of the constraint that limits the node to at most one copy of the pod, or
// "" if there is none.
func (r *rules) single(n *node) string {
	switch {
	case r == nil:
		return ""
	case len(r.ports) > 0:
		return hostPorts
	case slices.ContainsFunc(r.anti, func(a antiRule) bool {
		return a.self && a.perNode && a.has(n)
	}):
		return ownAntiAffinity
	}
	return ""
}
