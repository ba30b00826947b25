// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
)

// relations indexes the running pods that constraints between pods depend on. Its fields are
// computed only when they are first needed, because most pods have no constraints on other pods.
type relations struct {
	nodes []*node
	// byNamespace contains the running pods by namespace.
	byNamespace map[string][]pod
	// carried maps the text of each distinct anti-affinity term (see term.text) to the term and the
	// running pods that have it.
	carried map[string]*carried
	// unique maps topology keys to the cached result of isUnique.
	unique map[string]bool
	// counters caches counters of running pods. A key is a string that identifies the pods and
	// nodes that the counter counts.
	counters map[string]*counter
}

// carried is an anti-affinity term together with the running pods that have it.
type carried struct {
	term
	pods []pod
}

func newRelations(list []*node) *relations {
	return &relations{nodes: list, unique: map[string]bool{}, counters: map[string]*counter{}}
}

// inNamespaces calls f for each running pod of the term's namespaces.
func (r *relations) inNamespaces(t *term, f func(pod)) {
	if r.byNamespace == nil {
		r.byNamespace = map[string][]pod{}
		for _, n := range r.nodes {
			for _, p := range n.pods {
				r.byNamespace[p.object.Namespace] = append(r.byNamespace[p.object.Namespace], p)
			}
		}
	}
	if t.namespaces == nil {
		for _, list := range r.byNamespace {
			for _, p := range list {
				f(p)
			}
		}
		return
	}
	for namespace := range t.namespaces {
		for _, p := range r.byNamespace[namespace] {
			f(p)
		}
	}
}

// terms returns the distinct anti-affinity terms of the running pods.
func (r *relations) terms() map[string]*carried {
	if r.carried != nil {
		return r.carried
	}
	r.carried = map[string]*carried{}
	for _, n := range r.nodes {
		for _, p := range n.pods {
			for _, t := range p.class.carries(p.object) {
				if r.carried[t.text] == nil {
					r.carried[t.text] = &carried{term: t}
				}
				r.carried[t.text].pods = append(r.carried[t.text].pods, p)
			}
		}
	}
	return r.carried
}

// isUnique reports whether no two nodes have the same value of a topology key, such as the host
// name.
func (r *relations) isUnique(key string) bool {
	unique, known := r.unique[key]
	if !known {
		values := map[string]bool{}
		unique = !slices.ContainsFunc(r.nodes, func(n *node) bool {
			value, has := n.object.Labels[key]
			twice := has && values[value]
			values[value] = true
			return twice
		})
		r.unique[key] = unique
	}
	return unique
}

// counter returns the counter with the given name. If there is none, `created` becomes the counter,
// and counts the running pods. The name must uniquely identify the selection of pods and nodes.
func (r *relations) counter(name string, t *term, created counter) *counter {
	if known := r.counters[name]; known != nil {
		return known
	}
	c := &created
	c.key, c.pods = t.key, map[string]int{}
	if c.domains != nil {
		for _, n := range r.nodes {
			c.addNode(n, 1)
		}
	}
	r.inNamespaces(t, func(p pod) { c.add(p, p.node, 1) })
	r.counters[name] = c
	return c
}

// repelling returns a counter of the running pods that have the anti-affinity term t.
func (r *relations) repelling(t *carried) *counter {
	name := "carried\x00" + t.text
	if known := r.counters[name]; known != nil {
		return known
	}
	c := &counter{key: t.key, pods: map[string]int{}, selects: func(p pod) bool {
		return slices.ContainsFunc(p.class.carries(p.object), func(other term) bool { return other.text == t.text })
	}}
	for _, p := range t.pods {
		if domain, is := c.domain(p.node); is {
			c.pods[domain]++
			c.total++
		}
	}
	r.counters[name] = c
	return c
}

// spreadOf returns the rule for a topology spread constraint of a pod. keys lists the topology keys
// of all constraints of the pod: only nodes with all of these labels count. complete is false if
// the constraint cannot be evaluated, because of an invalid selector or a label that the pod lacks.
func (r *relations) spreadOf(example *corev1.Pod, c *corev1.TopologySpreadConstraint, keys []string) (rule spreadRule, complete bool) {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return spreadRule{}, false
	}
	selector, complete = withKeys(selector, example.Labels, c.MatchLabelKeys, selection.In)
	own := term{key: c.TopologyKey, selector: selector, namespaces: sets.New(example.Namespace)}
	required := nodeaffinity.GetRequiredNodeAffinity(example)
	honorsAffinity := ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor
	honorsTaints := ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor
	on := func(n *corev1.Node) bool {
		if slices.ContainsFunc(keys, func(key string) bool { _, has := n.Labels[key]; return !has }) {
			return false
		}
		if honorsAffinity {
			if fits, err := required.Match(n); err != nil || !fits {
				return false
			}
		}
		return !honorsTaints || !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return nodes.Blocks(&t, example.Spec.Tolerations) })
	}
	name := strings.Join([]string{
		"spread", own.key, example.Namespace, selector.String(), strings.Join(keys, ","),
		strconv.FormatBool(honorsAffinity), strconv.FormatBool(honorsTaints),
	}, "\x00")
	if honorsAffinity || honorsTaints {
		name += "\x00" + constraintsOf(&example.Spec)
	}
	selects := func(p pod) bool {
		// As in the scheduler, pods that are being deleted do not count, and an empty selector
		// selects no running pod.
		return p.object.DeletionTimestamp.IsZero() && !selector.Empty() && own.matches(p.object)
	}
	rule = spreadRule{
		counter: r.counter(name, &own, counter{selects: selects, on: on, domains: &domains{nodes: map[string]int{}, byPods: map[int]int{}}}),
		maxSkew: int(c.MaxSkew), minDomains: int(ptr.Deref(c.MinDomains, 1)), perNode: r.isUnique(c.TopologyKey),
	}
	if selector.Matches(labels.Set(example.Labels)) {
		rule.self = 1
	}
	rule.grows = rule.self == 1 && !selector.Empty()
	return rule, complete
}

// refusal returns the name of the constraint between pods because of which a node accepts no copy
// of a pod with the given rules. It returns "" if there is no such constraint.
func (r *relations) refusal(of *rules, n *node) string {
	if of == nil {
		return ""
	}
	return of.lasting(n, r.usedPorts(of, n))
}

// usedPorts returns the host ports in use on a node, or nil if the rules do not depend on host
// ports.
func (r *relations) usedPorts(of *rules, n *node) (used []hostPort) {
	if len(of.ports) == 0 {
		return nil
	}
	for _, p := range n.pods {
		used = append(used, hostPortsOf(&p.object.Spec)...)
	}
	return used
}
