// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// memory is the in-memory state of a ScheduledRestart, in addition to its status. Each field is
// used by only one type of this package.
type memory struct {
	sent       *sentTick
	claim      *claim
	attempts   *attemptsFor
	refusal    *refusal
	failedSend *failedSend
	defaults   *refusedDefault
	config     *configUse
	storm      *decision.Source
	// reason is the reason of the condition Ready. overdue is the time at which the
	// ScheduledRestart becomes overdue.
	reason  string
	overdue due
	// missTurn is the time from which on missed ticks (scheduled times) of the ScheduledRestart may
	// be reported; zero if their report need not wait.
	missTurn time.Time
	// reportedRequest is the last invalid restart request that was reported by an event.
	reportedRequest string
}

// memories maps each ScheduledRestart to its in-memory state. Its methods call functions while they
// hold the lock mu. Such a function may take the lock of another type, but must not call a method
// of memories.
type memories struct {
	mu       sync.Mutex
	all      map[types.NamespacedName]*memory
	cleanups []func(types.NamespacedName, *memory)
}

func newMemories() *memories { return &memories{all: map[types.NamespacedName]*memory{}} }

// onForget registers a function that is called for the in-memory state of each deleted
// ScheduledRestart. A type that counts or indexes such states registers a function to update its
// count or index.
func (m *memories) onForget(cleanup func(types.NamespacedName, *memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleanups = append(m.cleanups, cleanup)
}

// with calls the function do with the in-memory state of a ScheduledRestart, while it holds the
// lock mu. If the state is empty after the call, it is dropped.
func (m *memories) with(key types.NamespacedName, do func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.all[key]
	if of == nil {
		of = &memory{}
	}
	if do(of); *of == (memory{}) {
		delete(m.all, key)
		return
	}
	m.all[key] = of
}

// each calls the function do with each ScheduledRestart and its in-memory state, while it holds the
// lock mu.
func (m *memories) each(do func(types.NamespacedName, *memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, of := range m.all {
		do(key, of)
	}
}

// forget drops the in-memory state of a deleted ScheduledRestart, and calls the functions that
// onForget registered.
func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.all[key]
	if of == nil {
		return
	}
	delete(m.all, key)
	for _, cleanup := range m.cleanups {
		cleanup(key, of)
	}
}

// tickOf identifies a tick (the scheduled time of a restart) of a ScheduledRestart. It includes the
// UID, because an earlier ScheduledRestart may have had the same name.
type tickOf struct {
	uid  types.UID
	tick time.Time
}

// tickInProgress identifies the tick of the restart in progress. It must not be called without a
// restart in progress.
func tickInProgress(restart *tidekeeperv1.ScheduledRestart) tickOf {
	return tickOf{restart.UID, restart.Status.Active.ScheduledTime.Time}
}

// isInProgress reports whether t is the tick (the scheduled time) of the restart in progress.
func (t tickOf) isInProgress(restart *tidekeeperv1.ScheduledRestart) bool {
	active := restart.Status.Active
	return active != nil && t.uid == restart.UID && t.tick.Equal(active.ScheduledTime.Time)
}

// sentTick is the last tick that this process sent to a ScheduledRestart's target.
type sentTick struct{ tickOf }

// rememberSent records that this process sent a tick (the scheduled time of a restart) to its
// target.
func (m *memories) rememberSent(key types.NamespacedName, uid types.UID, tick time.Time) {
	m.with(key, func(of *memory) { of.sent = &sentTick{tickOf{uid, tick}} })
}

// lastSent returns the last tick (scheduled time of a restart) that this process sent to the
// target; zero if it sent none.
func (m *memories) lastSent(key types.NamespacedName, uid types.UID) (tick time.Time) {
	m.with(key, func(of *memory) {
		if of.sent != nil && of.sent.uid == uid {
			tick = of.sent.tick
		}
	})
	return tick
}
