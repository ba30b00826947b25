// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
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
	podIndex
	// carried indexes the distinct anti-affinity terms of the running pods.
	carried *termIndex
	// topologies caches the topology of each node label that was asked for.
	topologies map[string]*topology
	// included caches the nodes that count for topology spread constraints, indexed by node.number.
	included map[string][]bool
	// counters caches counters of running pods. A key is a string that identifies the pods and
	// nodes that the counter counts.
	counters map[string]*counter
	// selecting contains the counters that select each running pod, indexed by node.number and
	// pod.index.
	selecting [][][]*counter
	// changes is the memory of the last admission's list of changes, which the next admission uses
	// again.
	changes []change
}

// carried is an anti-affinity term together with the running pods that have it.
type carried struct {
	term
	pods []pod
}

func newRelations(list []*node) *relations {
	return &relations{
		podIndex: podIndex{nodes: list}, topologies: map[string]*topology{}, included: map[string][]bool{},
		counters: map[string]*counter{},
	}
}

// terms returns the distinct anti-affinity terms of the running pods.
func (r *relations) terms() *termIndex {
	if r.carried != nil {
		return r.carried
	}
	terms := map[string]*carried{} // by term.text
	r.each(func(p pod) {
		for _, t := range p.class.carries(p.object) {
			known := terms[t.text]
			if known == nil {
				known = &carried{term: t}
				terms[t.text] = known
			}
			// A pod that has a term twice counts once.
			if last := len(known.pods) - 1; last < 0 || known.pods[last] != p {
				known.pods = append(known.pods, p)
			}
		}
	})
	r.carried = newTermIndex(terms)
	return r.carried
}

// counter returns the counter with the given name. If there is none, `created` becomes the counter,
// and counts the running pods. The name must uniquely identify the selection of pods and nodes.
func (r *relations) counter(name string, t *term, created counter) *counter {
	if known := r.counters[name]; known != nil {
		return known
	}
	c := &created
	c.setTopology(t.key, r.topology(t.key))
	if c.domains != nil {
		if c.domains.nodes = c.topology.tally(); c.domains.nodes.many != nil {
			c.domains.byPods = map[int]int{}
		}
		for _, n := range r.nodes {
			c.addNode(n, 1)
		}
	}
	r.candidates(t, func(p pod) {
		if c.selects(p) {
			r.countRunning(c, p)
		}
	})
	r.counters[name] = c
	return c
}

// repelling returns a counter of the running pods that have the anti-affinity term t.
func (r *relations) repelling(t *carried) *counter {
	name := "carried\x00" + t.text
	if known := r.counters[name]; known != nil {
		return known
	}
	c := &counter{selects: func(p pod) bool {
		return slices.ContainsFunc(p.class.carries(p.object), func(other term) bool { return other.text == t.text })
	}}
	c.setTopology(t.key, r.topology(t.key))
	for _, p := range t.pods {
		r.countRunning(c, p)
	}
	r.counters[name] = c
	return c
}

// countRunning adds a running pod to a new counter that selects it.
func (r *relations) countRunning(c *counter, p pod) {
	c.count(p.node, 1)
	if r.selecting == nil {
		r.selecting = make([][][]*counter, len(r.nodes))
	}
	ofNode := &r.selecting[p.node.number]
	if *ofNode == nil {
		*ofNode = make([][]*counter, len(p.node.pods))
	}
	(*ofNode)[p.index] = append((*ofNode)[p.index], c)
}

// selectingOf returns the counters that select a running pod.
func (r *relations) selectingOf(p pod) []*counter {
	if r.selecting == nil || r.selecting[p.node.number] == nil {
		return nil
	}
	return r.selecting[p.node.number][p.index]
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
	on, included := r.includedNodes(example, c, keys)
	name := strings.Join([]string{"spread", own.key, example.Namespace, selector.String(), included}, "\x00")
	selects := func(p pod) bool {
		// As in the scheduler, pods that are being deleted do not count, and an empty selector
		// selects no running pod.
		return p.object.DeletionTimestamp.IsZero() && !selector.Empty() && own.matches(p.object)
	}
	rule = spreadRule{
		counter: r.counter(name, &own, counter{selects: selects, on: on, domains: &domains{}}),
		maxSkew: int(c.MaxSkew), minDomains: int(ptr.Deref(c.MinDomains, 1)), perNode: r.isUnique(c.TopologyKey),
	}
	if selector.Matches(labels.Set(example.Labels)) {
		rule.self = 1
	}
	rule.grows = rule.self == 1 && !selector.Empty()
	return rule, complete
}

// includedNodes returns the nodes that count for a topology spread constraint of a pod, indexed by
// node.number, and a text that identifies them. See [relations.spreadOf] for keys.
func (r *relations) includedNodes(example *corev1.Pod, c *corev1.TopologySpreadConstraint, keys []string) (on []bool, name string) {
	parts := []string{strings.Join(keys, ",")}
	honorsAffinity := ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor
	if honorsAffinity {
		parts = append(parts, "affinity", labels.FormatLabels(example.Spec.NodeSelector))
		if affinity := example.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
			parts = append(parts, affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.String())
		}
	}
	honorsTaints := ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor
	if honorsTaints {
		parts = append(parts, "taints")
		for i := range example.Spec.Tolerations {
			parts = append(parts, example.Spec.Tolerations[i].String())
		}
	}
	name = strings.Join(parts, "\x00")
	on = r.included[name]
	if on != nil {
		return on, name
	}
	required := nodeaffinity.GetRequiredNodeAffinity(example)
	includes := func(n *corev1.Node) bool {
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
	on = make([]bool, len(r.nodes))
	for i, n := range r.nodes {
		on[i] = includes(n.object)
	}
	r.included[name] = on
	return on, name
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
