// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// budget bounds how many restarts run at once, in the cluster and in one
// namespace. A slot goes to the namespace that has the fewest, and there, and
// among namespaces that have equally many, to who has waited longest. So a
// namespace with a long line holds up only itself.
//
// It is kept in memory only: what is under way stands in the status of the
// ScheduledRestarts, from which a new leader fills it.
type budget struct {
	// limit is how many restarts may run at once, share how many of one
	// namespace.
	limit, share int

	mu     sync.Mutex
	held   map[types.NamespacedName]bool
	spaces map[string]int
	// outlived are under way, but their slots have gone to others.
	outlived map[types.NamespacedName]bool
	// lines are who waits, by namespace, in the order of their turn, and since
	// when.
	lines map[string][]waiter
	since map[types.NamespacedName]time.Time
}

type waiter struct {
	since time.Time
	key   types.NamespacedName
}

func byTurn(a, b waiter) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
}

// newBudget makes a budget of which one namespace may have so many percent, and
// at least one slot.
func newBudget(limit, percent int) *budget {
	return &budget{
		limit: limit, share: max(1, limit*percent/100),
		held: map[types.NamespacedName]bool{}, spaces: map[string]int{}, outlived: map[types.NamespacedName]bool{},
		lines: map[string][]waiter{}, since: map[types.NamespacedName]time.Time{},
	}
}

// hold gives a slot to what is under way already, even if there is none left,
// unless it has outlived its slot.
func (b *budget) hold(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.outlived[key] {
		b.occupy(key)
	}
}

// take asks for a slot, and tells whether it has one now. If not, it waits in
// line, since the given time; who is in line already keeps its place.
func (b *budget) take(key types.NamespacedName, since time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[key] {
		return true
	}
	delete(b.outlived, key)
	if _, waits := b.since[key]; !waits {
		line := b.lines[key.Namespace]
		i, _ := slices.BinarySearchFunc(line, waiter{since, key}, byTurn)
		b.lines[key.Namespace] = slices.Insert(line, i, waiter{since, key})
		b.since[key] = since
	}
	if !slices.Contains(b.next(), key) {
		return false
	}
	b.occupy(key)
	return true
}

// has tells whether the key has a slot.
func (b *budget) has(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held[key]
}

// outlive takes the slot from a restart that goes on without one, and returns who
// can have a slot now.
func (b *budget) outlive(key types.NamespacedName) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.outlived[key] {
		return nil
	}
	b.outlived[key] = true
	b.leave(key)
	b.vacate(key)
	return b.next()
}

// release gives a slot or a place in line back, and returns who can have a slot
// now.
func (b *budget) release(key types.NamespacedName) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.outlived, key)
	waited, held := b.leave(key), b.vacate(key)
	if !waited && !held {
		return nil
	}
	return b.next()
}

// usage returns how many slots are used, how many restarts wait for one, and how
// many are under way that have outlived theirs.
func (b *budget) usage() (used, waiting, outlived int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held), len(b.since), len(b.outlived)
}

func (b *budget) occupy(key types.NamespacedName) {
	b.leave(key)
	if !b.held[key] {
		b.held[key] = true
		b.spaces[key.Namespace]++
	}
}

func (b *budget) vacate(key types.NamespacedName) bool {
	if !b.held[key] {
		return false
	}
	delete(b.held, key)
	if b.spaces[key.Namespace]--; b.spaces[key.Namespace] == 0 {
		delete(b.spaces, key.Namespace)
	}
	return true
}

// leave takes the key out of the line, if it is in it.
func (b *budget) leave(key types.NamespacedName) bool {
	since, waits := b.since[key]
	if !waits {
		return false
	}
	delete(b.since, key)
	line := b.lines[key.Namespace]
	i, _ := slices.BinarySearchFunc(line, waiter{since, key}, byTurn)
	if line = slices.Delete(line, i, i+1); len(line) == 0 {
		delete(b.lines, key.Namespace)
	} else {
		b.lines[key.Namespace] = line
	}
	return true
}

// next returns those in line that there are slots for.
func (b *budget) next() []types.NamespacedName {
	var next []types.NamespacedName
	taken := map[string]int{}
	for free := b.limit - len(b.held); free > 0; free-- {
		var first *waiter
		fewest := b.share
		for namespace, line := range b.lines {
			has := b.spaces[namespace] + taken[namespace]
			if has > fewest || has >= b.share || taken[namespace] == len(line) {
				continue
			}
			if w := &line[taken[namespace]]; first == nil || has < fewest || byTurn(*w, *first) < 0 {
				first, fewest = w, has
			}
		}
		if first == nil {
			break
		}
		next = append(next, first.key)
		taken[first.key.Namespace]++
	}
	return next
}
