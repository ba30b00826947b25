// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package order keeps which ScheduledRestarts come after which, as a graph that events update, so
// that a decision need not search it.
package order

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Graph has the orders of all namespaces. The zero value is empty, and ready to use.
type Graph struct {
	mu         sync.Mutex
	namespaces map[string]*namespace
}

// namespace is the order within a namespace.
type namespace struct {
	// after has the names that each ScheduledRestart comes after, if it comes after any, and
	// followers those that come after a name, which need not exist.
	after     map[string][]string
	followers map[string]map[string]bool
	// cycles has a number for each ScheduledRestart that comes after itself, which it shares with all
	// that both come after it and before it. Nil means that they are not known.
	cycles map[string]int
}

// Set sets the predecessors of a ScheduledRestart; none, if it is deleted.
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

// Followers returns the names of the ScheduledRestarts that come after a ScheduledRestart.
func (g *Graph) Followers(key types.NamespacedName) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.namespaces[key.Namespace]
	if n == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(n.followers[key.Name]))
}

// Cycle returns the names by which a ScheduledRestart comes after itself, from it to it, or nil if
// it does not. Of a long way the middle is left out.
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

// maxWay is how many ScheduledRestarts are looked at to find the shortest way from a ScheduledRestart to itself.
const maxWay = 1000

// way returns the shortest way from a name on a cycle to itself.
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

// findCycles finds the strongly connected components of the graph, by Tarjan's algorithm, except
// for single ones that do not come after themselves.
func (n *namespace) findCycles() {
	n.cycles = map[string]int{}
	// number is the place in which each was found, and low the earliest that it leads to, as far
	// as that is open.
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
