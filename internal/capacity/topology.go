// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

// topology divides the nodes of a cluster into domains by the value of a label.
type topology struct {
	// of contains the domain of each node, indexed by node.number: an index of values, or -1 for a
	// node without the label.
	of     []int32
	values []string
	// numbers maps values of the label to domains.
	numbers map[string]int32
	// unique is true if no domain has several nodes, as for the label with the host name.
	unique bool
}

func newTopology(list []*node, key string) *topology {
	t := &topology{of: make([]int32, len(list)), numbers: map[string]int32{}, unique: true}
	for i, n := range list {
		value, has := n.object.Labels[key]
		if !has {
			t.of[i] = -1
			continue
		}
		domain, known := t.numbers[value]
		if !known {
			domain = int32(len(t.values)) //nolint:gosec // There are fewer nodes than that.
			t.numbers[value], t.values = domain, append(t.values, value)
		}
		t.of[i], t.unique = domain, t.unique && !known
	}
	return t
}

// topology returns the topology of a node label.
func (r *relations) topology(key string) *topology {
	known := r.topologies[key]
	if known == nil {
		known = newTopology(r.nodes, key)
		r.topologies[key] = known
	}
	return known
}

// isUnique reports whether no two nodes have the same value of a topology key, such as the host
// name.
func (r *relations) isUnique(key string) bool { return r.topology(key).unique }

// tally is a number for each domain of a topology.
type tally struct {
	// few has the numbers if there are few domains, such as zones. Otherwise, many has those that
	// have been set, because a workload's pods are on few of the nodes.
	few  []int32
	many map[int32]int32
}

// fewDomains is the number of domains up to which a tally has a number for each of them.
const fewDomains = 32

func (t *topology) tally() tally {
	if len(t.values) <= fewDomains {
		return tally{few: make([]int32, len(t.values))}
	}
	return tally{many: map[int32]int32{}}
}

// at returns the number for a domain; 0 for -1, which stands for no domain.
func (t *tally) at(domain int32) int {
	switch {
	case t.many != nil:
		return int(t.many[domain])
	case domain < 0:
		return 0
	}
	return int(t.few[domain])
}

// add adds to the number for a domain.
func (t *tally) add(domain int32, by int) {
	if t.many == nil {
		t.few[domain] += int32(by) //nolint:gosec // A cluster has fewer pods than that.
		return
	}
	t.many[domain] += int32(by) //nolint:gosec // A cluster has fewer pods than that.
}
