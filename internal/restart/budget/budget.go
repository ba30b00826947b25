// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget limits the number of restarts in progress, and chooses which restart starts next.
package budget

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Defaults of the limits of the restart budget; the share is a percentage of the slots.
const (
	DefaultMaxConcurrent  = 20
	DefaultNamespaceShare = 50
	DefaultSlotAge        = 10 * time.Minute
)

// Highest values of the limits of the restart budget; the share is a percentage of the slots.
const (
	HighestMaxConcurrent  = 100_000
	HighestNamespaceShare = 100
	LongestSlotAge        = 24 * time.Hour
)

// Names of the manager's flags that set the limits of the restart budget.
const (
	FlagMaxConcurrent  = "max-concurrent-restarts"
	FlagNamespaceShare = "restart-namespace-share"
	FlagSlotAge        = "restart-slot-age"
)

// Budget limits the number of restarts in progress, in the cluster and in each namespace: a restart
// needs a free slot to start. A free slot goes to the namespace that uses the fewest slots. Among
// namespaces that use the same number, it goes to the namespace that has waited longest since its
// last slot. Within a namespace, and among namespaces that have had no slot since they began to
// wait, the restart that has waited longest is next. A namespace with a long queue therefore delays
// only its own restarts, no matter how quickly they complete.
//
// The budget is kept in memory only. A new leader adds the waiting restarts and the restarts in
// progress, according to the status of the ScheduledRestarts. The key of a restart is the namespace
// and name of its ScheduledRestart.
type Budget struct {
	// limit is the number of slots in the cluster, share the number that a namespace may use.
	limit, share int

	mu sync.Mutex
	// held maps each restart that holds a slot to the time at which it began to use the slot. The
	// time is zero if the restart has not started yet.
	held   map[types.NamespacedName]time.Time
	spaces spaces
	// outlived is the set of restarts in progress that lost their slots after the maximum time.
	outlived map[types.NamespacedName]bool
	// since maps each waiting restart to the time at which it began to wait.
	since map[types.NamespacedName]time.Time
	// expected is the set of waiting restarts for which [Budget.Take] has not been called yet.
	expected map[types.NamespacedName]bool
	turns    turns
	// given is the total number of slots that this budget has given to restarts since its creation.
	given uint64
}

// space is the state of a namespace. held is the number of slots that it uses. queue holds its
// waiting restarts. given is the number of restarts in the queue that the current call of
// [Budget.next] has already chosen.
type space struct {
	held  int
	queue []waiter
	given int
	// served is the value that [Budget.given] had when this namespace got its last slot or, if that
	// is later, when it began to wait.
	served uint64
	// turn is the index of this namespace in [Budget.turns]. It is valid only if hasTurn is true.
	turn    int
	hasTurn bool
}

// add inserts a waiting restart into the queue of the namespace.
func (s *space) add(w waiter) {
	i, _ := slices.BinarySearchFunc(s.queue, w, byTurn)
	s.queue = slices.Insert(s.queue, i, w)
}

// remove removes a waiting restart from the queue of the namespace.
func (s *space) remove(w waiter) {
	i, _ := slices.BinarySearchFunc(s.queue, w, byTurn)
	s.queue = slices.Delete(s.queue, i, i+1)
}

// spaces maps each namespace that uses or waits for a slot to its state.
type spaces map[string]*space

// of returns the state of a namespace. If necessary, it creates a state in which the field
// [space.served] has the given value.
func (s spaces) of(namespace string, served uint64) *space {
	if s[namespace] == nil {
		s[namespace] = &space{served: served}
	}
	return s[namespace]
}

// uses returns the number of slots that the given namespace uses.
func (s spaces) uses(namespace string) int {
	if in := s[namespace]; in != nil {
		return in.held
	}
	return 0
}

// tidy drops the state of a namespace that neither uses nor waits for a slot.
func (s spaces) tidy(namespace string) {
	if in := s[namespace]; in.held == 0 && len(in.queue) == 0 {
		delete(s, namespace)
	}
}

type waiter struct {
	since time.Time
	key   types.NamespacedName
}

// byTurn orders restarts by the time at which they began to wait, then by name.
func byTurn(a, b waiter) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
}

// New returns a budget with the given number of slots. A namespace may use the given percentage of
// the slots, but always at least one slot.
func New(limit, percent int) *Budget {
	return &Budget{
		limit: limit, share: Share(limit, percent),
		held: map[types.NamespacedName]time.Time{}, spaces: spaces{}, outlived: map[types.NamespacedName]bool{},
		since: map[types.NamespacedName]time.Time{}, expected: map[types.NamespacedName]bool{},
	}
}

// Share returns the number of slots that a namespace may use: the given percentage of the limit,
// but at least 1.
func Share(limit, percent int) int { return max(1, limit*percent/100) }

// Hold gives a slot to a restart in progress, even if no slot is free, and returns the earliest
// start time with which Hold was called for that slot. If the restart has lost its slot before, or
// waits for another slot, it gets none, and Hold returns the given time.
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

// Take requests a slot for a restart, and reports whether the restart has a slot now. A restart
// without a slot waits from the given time on, or keeps its place if it is already waiting.
func (b *Budget) Take(key types.NamespacedName, since time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has(key) {
		return true
	}
	delete(b.outlived, key)
	if _, waits := b.since[key]; !waits || b.expected[key] {
		b.wait(key, since)
	}
	if !slices.Contains(b.next(), key) {
		return false
	}
	b.occupy(key)
	return true
}

// Expect adds a restart to the queue if it waits for a slot according to its status. [Budget.Take]
// later replaces the given time, and [Budget.Release] removes the restart. Without Expect, a new
// leader would give the slots to the restarts for which Take happens to be called first.
func (b *Budget) Expect(key types.NamespacedName, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, waits := b.since[key]; waits || b.has(key) {
		return
	}
	b.wait(key, since)
	b.expected[key] = true
}

// wait adds a restart to the queue of its namespace, or updates its place in the queue.
func (b *Budget) wait(key types.NamespacedName, since time.Time) {
	in := b.spaces.of(key.Namespace, b.given)
	if before, waits := b.since[key]; waits {
		in.remove(waiter{before, key})
	}
	in.add(waiter{since, key})
	b.since[key] = since
	delete(b.expected, key)
	b.moved(in)
}

// Spare gives a slot to a restart if a slot is free and no restart waits. It reports whether the
// restart has a slot now.
func (b *Budget) Spare(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has(key) {
		return true
	}
	if len(b.since) > 0 || len(b.held) >= b.limit || b.spaces.uses(key.Namespace) >= b.share {
		return false
	}
	delete(b.outlived, key)
	b.occupy(key)
	return true
}

// Has reports whether the given restart has a slot.
func (b *Budget) Has(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.has(key)
}

func (b *Budget) has(key types.NamespacedName) bool {
	_, has := b.held[key]
	return has
}

// Outlived reports whether the given restart is in progress but no longer holds a slot.
func (b *Budget) Outlived(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outlived[key]
}

// Outlive takes the slot from a restart that remains in progress, and returns the restarts that can
// get a slot now. A restart that already waits for a new slot keeps its place in the queue.
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

// Release gives up the slot of a restart or its place in the queue, and returns the restarts that
// can get a slot now.
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

// Limit returns the maximum number of restarts that can hold a slot.
func (b *Budget) Limit() int { return b.limit }

// ShareUsed reports whether a namespace uses all slots of its share. It returns false if the share
// equals the limit, because the limit then keeps restarts waiting, not the share.
func (b *Budget) ShareUsed(namespace string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.share < b.limit && b.spaces.uses(namespace) >= b.share
}

// Share returns the maximum number of slots that a namespace may use.
func (b *Budget) Share() int { return b.share }

// Usage returns the number of used slots, the number of waiting restarts, and the number of
// restarts in progress that have outlived their slots.
func (b *Budget) Usage() (used, waiting, outlived int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held), len(b.since), len(b.outlived)
}

func (b *Budget) occupy(key types.NamespacedName) {
	b.leave(key)
	if !b.has(key) {
		b.held[key] = time.Time{}
		in := b.spaces.of(key.Namespace, b.given)
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
	b.spaces.tidy(key.Namespace)
	return true
}

// leave removes a restart from the queue of its namespace, and reports whether the restart waited.
func (b *Budget) leave(key types.NamespacedName) bool {
	since, waits := b.since[key]
	if !waits {
		return false
	}
	delete(b.since, key)
	delete(b.expected, key)
	in := b.spaces[key.Namespace]
	in.remove(waiter{since, key})
	b.moved(in)
	b.spaces.tidy(key.Namespace)
	return true
}

// next returns the waiting restarts that can get a slot now, in the order in which they get it.
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
	// The chosen restarts do not hold slots yet, so undo the changes of the loop to their
	// namespaces.
	for in, before := range served {
		in.given, in.served = 0, before
		b.moved(in)
	}
	return next
}

// moved updates the position of a namespace in the heap [Budget.turns] after its state has changed.
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

// before reports whether the next slot goes to the namespace s rather than to the namespace other.
func (s *space) before(other *space) bool {
	has, others := s.held+s.given, other.held+other.given
	order := cmp.Or(cmp.Compare(has, others), cmp.Compare(s.served, other.served))
	return order < 0 || order == 0 && byTurn(s.queue[s.given], other.queue[other.given]) < 0
}

// turns is a heap of the namespaces that have a waiting restart and have not used up their share.
// The first namespace gets the next slot.
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
