// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package order maintains the order of ScheduledRestarts (spec.after) as a graph. With the graph,
// decisions need not search for cycles, nor for the followers of a ScheduledRestart, which name it
// in spec.after. Watch events update the graph.
package order

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Graph holds the order of the ScheduledRestarts in all namespaces. The zero value is empty and
// ready to use.
type Graph struct {
	mu         sync.Mutex
	namespaces map[string]*namespace
}

// namespace holds the order of the ScheduledRestarts in a namespace.
type namespace struct {
	// after maps each ScheduledRestart to the names of its predecessors; it omits ScheduledRestarts
	// without predecessors. followers maps each predecessor to the set of ScheduledRestarts that
	// name it; the predecessor need not exist.
	after     map[string][]string
	followers map[string]map[string]bool
	// cycles maps each ScheduledRestart on a cycle to the number of its strongly connected
	// component. It is nil if the cycles must be computed again.
	cycles map[string]int
}

// Set sets the predecessors of a ScheduledRestart. For a deleted ScheduledRestart, after must be
// empty.
func (g *Graph) Set(key types.NamespacedName, after []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.namespaces[key.Namespace]
	if n == nil {
		if len(after) == 0 {
			return
		}
		if g.namespaces == nil {
			g.namespaces = map[string]*namespace{}
		}
		n = &namespace{after: map[string][]string{}, followers: map[string]map[string]bool{}}
		g.namespaces[key.Namespace] = n
	}
	before := n.after[key.Name]
	if slices.Equal(before, after) {
		return
	}
	n.cycles = nil
	for _, name := range before {
		if delete(n.followers[name], key.Name); len(n.followers[name]) == 0 {
			delete(n.followers, name)
		}
	}
	for _, name := range after {
		if n.followers[name] == nil {
			n.followers[name] = map[string]bool{}
		}
		n.followers[name][key.Name] = true
	}
	if n.after[key.Name] = slices.Clone(after); len(after) > 0 {
		return
	}
	if delete(n.after, key.Name); len(n.after) == 0 {
		delete(g.namespaces, key.Namespace)
	}
}

// Followers returns the sorted names of the ScheduledRestarts that have the given ScheduledRestart
// as a predecessor.
func (g *Graph) Followers(key types.NamespacedName) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.namespaces[key.Namespace]
	if n == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(n.followers[key.Name]))
}

// Cycle returns a cycle of predecessors (spec.after) through a ScheduledRestart; nil if it is not
// on a cycle. The cycle is a list of names that begins and ends with the name of the
// ScheduledRestart. If the cycle is so long that the search gives up, an ellipsis replaces all
// other names.
func (g *Graph) Cycle(key types.NamespacedName) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.namespaces[key.Namespace]
	if n == nil {
		return nil
	}
	if n.cycles == nil {
		n.findCycles()
	}
	if n.cycles[key.Name] == 0 {
		return nil
	}
	return n.way(key.Name)
}

// maxWay is the maximum number of ScheduledRestarts that the search for the shortest cycle visits.
const maxWay = 1000

// way returns the shortest cycle through the given name, in the form in which [Graph.Cycle] returns
// it. The name must be on a cycle.
func (n *namespace) way(name string) []string {
	from := map[string]string{}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		for _, after := range n.after[next[0]] {
			if after == name {
				way := []string{name}
				for at := next[0]; at != name; at = from[at] {
					way = append(way, at)
				}
				way = append(way, name)
				slices.Reverse(way)
				return way
			}
			if n.cycles[after] == n.cycles[name] && from[after] == "" && len(from) < maxWay {
				from[after] = next[0]
				next = append(next, after)
			}
		}
	}
	return []string{name, "…", name}
}

// findCycles finds the strongly connected components with Tarjan's algorithm. A component with a
// single ScheduledRestart counts only if the ScheduledRestart has itself as a predecessor.
func (n *namespace) findCycles() {
	n.cycles = map[string]int{}
	// number maps each node, a ScheduledRestart, to its position in the order of discovery. low
	// maps a node to the smallest number of a node in open that is reachable from it.
	number, low, isOpen := map[string]int{}, map[string]int{}, map[string]bool{}
	var open []string
	var visit func(string)
	visit = func(name string) {
		number[name] = len(number) + 1
		low[name] = number[name]
		open, isOpen[name] = append(open, name), true
		for _, after := range n.after[name] {
			if number[after] == 0 {
				visit(after)
				low[name] = min(low[name], low[after])
			} else if isOpen[after] {
				low[name] = min(low[name], number[after])
			}
		}
		if low[name] != number[name] {
			return
		}
		first := len(open) - 1
		for open[first] != name {
			first--
		}
		found := open[first:]
		open = open[:first]
		for _, member := range found {
			isOpen[member] = false
			if len(found) > 1 || slices.Contains(n.after[member], member) {
				n.cycles[member] = number[name]
			}
		}
	}
	for name := range n.after {
		if number[name] == 0 {
			visit(name)
		}
	}
}
