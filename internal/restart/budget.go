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
// namespace. Who waits gets a slot by the time of the tick, the earliest first;
// who could not use one, because its namespace has its share, does not hold up
// the others. It is kept in memory only: what is under way stands in the status
// of the ScheduledRestarts, from which a new leader fills it.
type budget struct {
	// limit is how many restarts may run at once, share how many of one
	// namespace.
	limit, share int

	mu     sync.Mutex
	held   map[types.NamespacedName]bool
	spaces map[string]int
	// line is who waits, in the order of their turn, and since when.
	line  []waiter
	since map[types.NamespacedName]time.Time
}

type waiter struct {
	due time.Time
	key types.NamespacedName
}

func byTurn(a, b waiter) int {
	return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
}

// newBudget makes a budget of which one namespace may have so many percent, and
// at least one slot.
func newBudget(limit, percent int) *budget {
	return &budget{
		limit: limit, share: max(1, limit*percent/100),
		held: map[types.NamespacedName]bool{}, spaces: map[string]int{}, since: map[types.NamespacedName]time.Time{},
	}
}

// hold gives a slot to what is under way already, even if there is none left.
func (b *budget) hold(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.occupy(key)
}

// take asks for a slot, for a restart that was due at some time, and tells
// whether it has one now. If not, it waits in line.
func (b *budget) take(key types.NamespacedName, due time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[key] {
		return true
	}
	b.leave(key)
	i, _ := slices.BinarySearchFunc(b.line, waiter{due, key}, byTurn)
	b.line = slices.Insert(b.line, i, waiter{due, key})
	b.since[key] = due
	if !slices.Contains(b.next(), key) {
		return false
	}
	b.occupy(key)
	return true
}

// release gives a slot or a place in line back, and returns who can have a slot
// now.
func (b *budget) release(key types.NamespacedName) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	waited := b.leave(key)
	if b.held[key] {
		delete(b.held, key)
		if b.spaces[key.Namespace]--; b.spaces[key.Namespace] == 0 {
			delete(b.spaces, key.Namespace)
		}
	} else if !waited {
		return nil
	}
	return b.next()
}

// usage returns how many slots are used, and how many restarts wait for one.
func (b *budget) usage() (used, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held), len(b.line)
}

func (b *budget) occupy(key types.NamespacedName) {
	b.leave(key)
	if !b.held[key] {
		b.held[key] = true
		b.spaces[key.Namespace]++
	}
}

// leave takes the key out of the line, if it is in it.
func (b *budget) leave(key types.NamespacedName) bool {
	due, waits := b.since[key]
	if waits {
		delete(b.since, key)
		i, _ := slices.BinarySearchFunc(b.line, waiter{due, key}, byTurn)
		b.line = slices.Delete(b.line, i, i+1)
	}
	return waits
}

// next returns those in line that there are slots for.
func (b *budget) next() []types.NamespacedName {
	free := b.limit - len(b.held)
	var next []types.NamespacedName
	taken := map[string]int{}
	for _, w := range b.line {
		if free <= 0 {
			break
		}
		if b.spaces[w.key.Namespace]+taken[w.key.Namespace] < b.share {
			next = append(next, w.key)
			taken[w.key.Namespace]++
			free--
		}
	}
	return next
}
