// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// emptyingMemories holds the evictions that this process has requested on nodes that are being
// emptied. After a restart of the process, evictions are requested again.
type emptyingMemories struct {
	mu    sync.Mutex
	nodes map[string]*emptyingMemory
}

// emptyingMemory holds the evictions requested for the pods of a node that is being emptied. It
// needs no lock, because each node is reconciled by a single worker at a time.
type emptyingMemory struct {
	attempts plan.EvictionAttempts
	// left is the number of pods that had to leave the node at the last reconcile. progressed is
	// the time of the last progress, which is an accepted eviction or a decrease of left.
	left       int
	progressed time.Time
	// blocked is true if the node counted as blocked, for lack of progress, at the last reconcile.
	blocked bool
}

func newEmptyingMemories() *emptyingMemories {
	return &emptyingMemories{nodes: map[string]*emptyingMemory{}}
}

// of returns the emptyingMemory of a node, and creates it if necessary. It first drops the
// evictions of pods that are no longer on the node. pods lists all pods on the node.
func (m *emptyingMemories) of(node string, pods []corev1.Pod, now time.Time) *emptyingMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory := m.nodes[node]
	if memory == nil {
		memory = &emptyingMemory{progressed: now}
		m.nodes[node] = memory
	}
	before := memory.attempts
	memory.attempts = plan.EvictionAttempts{
		Tried: map[types.UID]time.Time{}, Accepted: map[types.UID]time.Time{}, Refused: map[types.UID]plan.RefusedEviction{},
	}
	for i := range pods {
		keep(before.Tried, memory.attempts.Tried, pods[i].UID)
		keep(before.Accepted, memory.attempts.Accepted, pods[i].UID)
		keep(before.Refused, memory.attempts.Refused, plan.EvictionGroup(&pods[i]))
	}
	return memory
}

func keep[V any](from, to map[types.UID]V, key types.UID) {
	if value, has := from[key]; has {
		to[key] = value
	}
}

// forget drops the emptyingMemory of a node that is no longer being emptied.
func (m *emptyingMemories) forget(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.nodes, node)
}

// note stores the outcome of a pod's eviction request. refusal is the reason if the eviction was
// refused or failed, and "" if the pod is being deleted or gone.
func (m *emptyingMemory) note(pod *corev1.Pod, refusal string, now time.Time) {
	group := plan.EvictionGroup(pod)
	m.attempts.Tried[pod.UID] = now
	if refusal == "" {
		m.attempts.Accepted[pod.UID] = now
		m.progressed = now
		delete(m.attempts.Refused, group)
		return
	}
	refused, again := m.attempts.Refused[group]
	if !again {
		refused.Since = now
	}
	refused.Reason, refused.At = refusal, now
	m.attempts.Refused[group] = refused
}

// hold is called while a Freeze forbids evictions. It restarts the time after which the node counts
// as blocked, because the lack of progress is intended.
func (m *emptyingMemory) hold(now time.Time) { m.progressed, m.blocked = now, false }

// look records a decision about the node. The node counts as blocked if a pod keeps it from being
// emptied, and if there has been no progress for the duration `patience`. since is then the time of
// the last progress, and zero otherwise. began is true if the node counts as blocked and did not at
// the previous decision.
func (m *emptyingMemory) look(decided *plan.EmptyingPlan, patience time.Duration, now time.Time) (since time.Time, began bool) {
	if decided.Left < m.left || m.progressed.After(now) {
		m.progressed = now
	}
	m.left = decided.Left
	if decided.Stays == "" || now.Sub(m.progressed) < patience {
		m.blocked = false
		return time.Time{}, false
	}
	began = !m.blocked
	m.blocked = true
	return m.progressed, began
}
