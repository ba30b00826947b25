// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget limits how many restarts are in progress at once, and says which is next.
package budget

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The limits of a manager that is given no others.
const (
	DefaultMaxConcurrent  = 20
	DefaultNamespaceShare = 50
	DefaultSlotAge        = 10 * time.Minute
)

// Budget limits how many restarts run at once, in the cluster and in one namespace. A free
// slot goes to the namespace that uses the fewest slots; among namespaces that use equally
// many, and within a namespace, it goes to the restart that has waited longest. So a
// namespace with a long queue holds up only itself.
//
// The budget is kept in memory only. A new leader fills it from the status of the
// ScheduledRestarts, which says which restarts are in progress.
type Budget struct {
	// limit is how many restarts may run at once, share how many of them in one namespace.
	limit, share int

	mu     sync.Mutex
	held   map[types.NamespacedName]bool
	spaces map[string]int
	// outlived are restarts in progress that no longer have a slot.
	outlived map[types.NamespacedName]bool
	// queues are the waiting restarts of each namespace, in order, and since is when each
	// began to wait.
	queues map[string][]waiter
	since  map[types.NamespacedName]time.Time
}

type waiter struct {
	since time.Time
	key   types.NamespacedName
}

// byTurn orders restarts by how long they have waited.
func byTurn(a, b waiter) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
}

// New returns a budget of which one namespace may use the given percentage, but at
// least one slot.
func New(limit, percent int) *Budget {
	return &Budget{
		limit: limit, share: Share(limit, percent),
		held: map[types.NamespacedName]bool{}, spaces: map[string]int{}, outlived: map[types.NamespacedName]bool{},
		queues: map[string][]waiter{}, since: map[types.NamespacedName]time.Time{},
	}
}

// Share returns how many slots of a limit one namespace may use, by its percentage: at least one.
func Share(limit, percent int) int { return max(1, limit*percent/100) }

// Hold gives a slot to a restart that is already in progress, even if no slot is free,
// unless it has outlived its slot.
func (b *Budget) Hold(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.outlived[key] {
		b.occupy(key)
	}
}

// Take asks for a slot, and reports whether the key has one now. Otherwise the key waits,
// since the given time, or in its place if it is already waiting.
func (b *Budget) Take(key types.NamespacedName, since time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[key] {
		return true
	}
	delete(b.outlived, key)
	if _, waits := b.since[key]; !waits {
		queue := b.queues[key.Namespace]
		i, _ := slices.BinarySearchFunc(queue, waiter{since, key}, byTurn)
		b.queues[key.Namespace] = slices.Insert(queue, i, waiter{since, key})
		b.since[key] = since
	}
	if !slices.Contains(b.next(), key) {
		return false
	}
	b.occupy(key)
	return true
}

// Spare reports whether the key has a slot, and gives it one if no other key waits for it.
func (b *Budget) Spare(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[key] {
		return true
	}
	if len(b.since) > 0 || len(b.held) >= b.limit || b.spaces[key.Namespace] >= b.share {
		return false
	}
	delete(b.outlived, key)
	b.occupy(key)
	return true
}

// Has reports whether the key has a slot.
func (b *Budget) Has(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held[key]
}

// Outlive takes the slot from a restart that continues without one, and returns the keys
// that can have a slot now.
func (b *Budget) Outlive(key types.NamespacedName) []types.NamespacedName {
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

// Release gives up a slot or a place in the queue, and returns the keys that can have a slot
// now.
func (b *Budget) Release(key types.NamespacedName) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.outlived, key)
	waited, held := b.leave(key), b.vacate(key)
	if !waited && !held {
		return nil
	}
	return b.next()
}

// Limit returns how many restarts may run at once.
func (b *Budget) Limit() int { return b.limit }

// Usage returns how many slots are used, how many restarts wait for one, and how many
// restarts in progress have outlived theirs.
func (b *Budget) Usage() (used, waiting, outlived int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held), len(b.since), len(b.outlived)
}

func (b *Budget) occupy(key types.NamespacedName) {
	b.leave(key)
	if !b.held[key] {
		b.held[key] = true
		b.spaces[key.Namespace]++
	}
}

func (b *Budget) vacate(key types.NamespacedName) bool {
	if !b.held[key] {
		return false
	}
	delete(b.held, key)
	if b.spaces[key.Namespace]--; b.spaces[key.Namespace] == 0 {
		delete(b.spaces, key.Namespace)
	}
	return true
}

// leave removes the key from its queue, and reports whether it was waiting.
func (b *Budget) leave(key types.NamespacedName) bool {
	since, waits := b.since[key]
	if !waits {
		return false
	}
	delete(b.since, key)
	queue := b.queues[key.Namespace]
	i, _ := slices.BinarySearchFunc(queue, waiter{since, key}, byTurn)
	if queue = slices.Delete(queue, i, i+1); len(queue) == 0 {
		delete(b.queues, key.Namespace)
	} else {
		b.queues[key.Namespace] = queue
	}
	return true
}

// next returns the waiting keys for which slots are free.
func (b *Budget) next() []types.NamespacedName {
	var next []types.NamespacedName
	taken := map[string]int{}
	for free := b.limit - len(b.held); free > 0; free-- {
		var first *waiter
		fewest := b.share
		for namespace, queue := range b.queues {
			has := b.spaces[namespace] + taken[namespace]
			if has > fewest || has >= b.share || taken[namespace] == len(queue) {
				continue
			}
			if w := &queue[taken[namespace]]; first == nil || has < fewest || byTurn(*w, *first) < 0 {
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
