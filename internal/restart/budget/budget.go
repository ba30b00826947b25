// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget limits how many restarts are in progress at once, and says which is next.
package budget

import (
	"cmp"
	"container/heap"
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

// The greatest limits of a manager.
const (
	HighestMaxConcurrent  = 100_000
	HighestNamespaceShare = 100
	LongestSlotAge        = 24 * time.Hour
)

// The flags of the manager that set the limits.
const (
	FlagMaxConcurrent  = "max-concurrent-restarts"
	FlagNamespaceShare = "restart-namespace-share"
	FlagSlotAge        = "restart-slot-age"
)

// Budget limits how many restarts run at once, in the cluster and in each namespace. A free
// slot goes to the namespace that uses the fewest slots, and among namespaces that use equally
// many it goes round: to the namespace that was given a slot the longest ago. Among namespaces that were given
// none since they began to wait, and within a namespace, it goes to the restart that has waited
// longest. So a namespace with a long queue holds up only itself, however quickly its restarts
// complete.
//
// The budget is kept in memory only. A new leader fills it from the status of the
// ScheduledRestarts, which says which restarts are in progress.
type Budget struct {
	// limit is how many restarts may run at once, share how many of them in each namespace.
	limit, share int

	mu sync.Mutex
	// held has when each restart with a slot began to use it; zero if it has not started yet.
	held map[types.NamespacedName]time.Time
	// spaces are the namespaces that use slots or wait for them.
	spaces map[string]*space
	// outlived are restarts in progress that no longer have a slot.
	outlived map[types.NamespacedName]bool
	// since is when each of the waiting restarts began to wait.
	since map[types.NamespacedName]time.Time
	// turns are the namespaces with a restart that may have a slot.
	turns turns
	// given is how many slots were given so far.
	given uint64
}

// space is a namespace: how many slots it uses, its waiting restarts, in order, and of these
// the keys that a search has given a slot.
type space struct {
	held  int
	queue []waiter
	given int
	// served is how many slots all namespaces had been given when this namespace was given its last, or
	// when it began to wait.
	served uint64
	// turn is its place among the turns, if it has a turn.
	turn    int
	hasTurn bool
}

type waiter struct {
	since time.Time
	key   types.NamespacedName
}

// byTurn orders restarts by how long they have waited.
func byTurn(a, b waiter) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
}

// New returns a budget of which a namespace may use the given percentage, but at
// least a single slot.
func New(limit, percent int) *Budget {
	return &Budget{
		limit: limit, share: Share(limit, percent),
		held: map[types.NamespacedName]time.Time{}, spaces: map[string]*space{}, outlived: map[types.NamespacedName]bool{},
		since: map[types.NamespacedName]time.Time{},
	}
}

// Share returns how many slots of a limit a namespace may use, by its percentage: at least 1.
func Share(limit, percent int) int { return max(1, limit*percent/100) }

// Hold gives a slot to a restart that is in progress since a time, even if no slot is free, unless
// it has outlived its slot or waits for another slot. It returns since when the restart has used
// the slot: the first time that was given, however often it was started again since.
func (b *Budget) Hold(key types.NamespacedName, since time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, waits := b.since[key]; b.outlived[key] || waits {
		return since
	}
	b.occupy(key)
	if first := b.held[key]; first.IsZero() || since.Before(first) {
		b.held[key] = since
	}
	return b.held[key]
}

// Take asks for a slot, and reports whether the key has a slot now. Otherwise the key waits,
// since the given time, or in its place if it is already waiting.
func (b *Budget) Take(key types.NamespacedName, since time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has(key) {
		return true
	}
	delete(b.outlived, key)
	if _, waits := b.since[key]; !waits {
		in := b.space(key.Namespace)
		i, _ := slices.BinarySearchFunc(in.queue, waiter{since, key}, byTurn)
		in.queue = slices.Insert(in.queue, i, waiter{since, key})
		b.since[key] = since
		b.moved(in)
	}
	if !slices.Contains(b.next(), key) {
		return false
	}
	b.occupy(key)
	return true
}

// Spare reports whether the key has a slot, and gives it a slot if no other key waits for that.
func (b *Budget) Spare(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has(key) {
		return true
	}
	if len(b.since) > 0 || len(b.held) >= b.limit || b.uses(key.Namespace) >= b.share {
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
	return b.has(key)
}

func (b *Budget) has(key types.NamespacedName) bool {
	_, has := b.held[key]
	return has
}

// Outlived reports whether the key is a restart in progress that no longer has a slot.
func (b *Budget) Outlived(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outlived[key]
}

// Outlive takes the slot from a restart that continues without a slot, and returns the keys
// that can have a slot now. A restart that waits for another slot keeps its place.
func (b *Budget) Outlive(key types.NamespacedName) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, waits := b.since[key]; b.outlived[key] || waits {
		return nil
	}
	b.outlived[key] = true
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

// ShareUsed reports whether the restarts of a namespace use all slots of its share, and these are not
// all that there are.
func (b *Budget) ShareUsed(namespace string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.share < b.limit && b.uses(namespace) >= b.share
}

// Share returns how many slots the restarts of a namespace may use at the same time.
func (b *Budget) Share() int { return b.share }

// Usage returns how many slots are used, how many restarts wait for a slot, and how many
// restarts in progress have outlived theirs.
func (b *Budget) Usage() (used, waiting, outlived int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held), len(b.since), len(b.outlived)
}

func (b *Budget) occupy(key types.NamespacedName) {
	b.leave(key)
	if !b.has(key) {
		b.held[key] = time.Time{}
		in := b.space(key.Namespace)
		in.held++
		b.given++
		in.served = b.given
		b.moved(in)
	}
}

func (b *Budget) vacate(key types.NamespacedName) bool {
	if !b.has(key) {
		return false
	}
	delete(b.held, key)
	in := b.spaces[key.Namespace]
	in.held--
	b.moved(in)
	b.tidy(key.Namespace)
	return true
}

// leave removes the key from its queue, and reports whether it was waiting.
func (b *Budget) leave(key types.NamespacedName) bool {
	since, waits := b.since[key]
	if !waits {
		return false
	}
	delete(b.since, key)
	in := b.spaces[key.Namespace]
	i, _ := slices.BinarySearchFunc(in.queue, waiter{since, key}, byTurn)
	in.queue = slices.Delete(in.queue, i, i+1)
	b.moved(in)
	b.tidy(key.Namespace)
	return true
}

// space returns a namespace, which it adds.
func (b *Budget) space(namespace string) *space {
	if b.spaces[namespace] == nil {
		b.spaces[namespace] = &space{served: b.given}
	}
	return b.spaces[namespace]
}

// uses returns how many slots a namespace uses.
func (b *Budget) uses(namespace string) int {
	if in := b.spaces[namespace]; in != nil {
		return in.held
	}
	return 0
}

// tidy forgets a namespace that neither uses a slot nor waits for any.
func (b *Budget) tidy(namespace string) {
	if in := b.spaces[namespace]; in.held == 0 && len(in.queue) == 0 {
		delete(b.spaces, namespace)
	}
}

// next returns the waiting keys for which slots are free.
func (b *Budget) next() []types.NamespacedName {
	if len(b.held) >= b.limit || len(b.turns) == 0 {
		return nil
	}
	var next []types.NamespacedName
	served := map[*space]uint64{}
	for free := b.limit - len(b.held); free > 0 && len(b.turns) > 0; free-- {
		first := b.turns[0]
		next = append(next, first.queue[first.given].key)
		if first.given++; first.given == 1 {
			served[first] = first.served
		}
		first.served = b.given + uint64(len(next))
		b.moved(first)
	}
	// They have not taken their slots yet.
	for in, before := range served {
		in.given, in.served = 0, before
		b.moved(in)
	}
	return next
}

// moved gives a namespace its place among the turns, as it has changed.
func (b *Budget) moved(in *space) {
	waits := in.given < len(in.queue) && in.held+in.given < b.share
	switch {
	case waits && in.hasTurn:
		heap.Fix(&b.turns, in.turn)
	case waits:
		heap.Push(&b.turns, in)
	case in.hasTurn:
		heap.Remove(&b.turns, in.turn)
	}
}

// before reports whether the next slot goes to this namespace and not to the other.
func (s *space) before(other *space) bool {
	has, others := s.held+s.given, other.held+other.given
	order := cmp.Or(cmp.Compare(has, others), cmp.Compare(s.served, other.served))
	return order < 0 || order == 0 && byTurn(s.queue[s.given], other.queue[other.given]) < 0
}

// turns are namespaces with a restart that may have a slot, as a heap: the next namespace is the first.
type turns []*space

func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].before(t[j]) }

// Swap implements [heap.Interface].
func (t turns) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].turn, t[j].turn = i, j
}

// Push implements [heap.Interface].
func (t *turns) Push(x any) {
	in := x.(*space)
	in.turn, in.hasTurn = len(*t), true
	*t = append(*t, in)
}

// Pop implements [heap.Interface].
func (t *turns) Pop() any {
	last := len(*t) - 1
	popped := (*t)[last]
	*t = (*t)[:last]
	popped.hasTurn = false
	return popped
}
