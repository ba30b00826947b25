// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// observation is a state of a pod that the API server sent, the end of a pod, or an event about
// a pod.
type observation struct {
	seen time.Time
	pod  *corev1.Pod
	// initial is true if the pod existed before the watch began.
	initial bool
	// gone is true if the pod no longer exists, for the given reason.
	gone   bool
	reason string
	// event, if not nil, is an event about the pod. The state of pod was reported already then.
	event *corev1.Event
}

// transitions returns the transitions from the last reported state of a pod to an observation,
// and the state that counts as reported with them.
func (o observation) transitions(reported *corev1.Pod) ([]Transition, *corev1.Pod) {
	var list []Transition
	state := o.pod
	switch {
	case o.event != nil:
		list, state = []Transition{happened(o.event, o.pod)}, reported
	case o.gone:
		list, state = []Transition{deleted(o.pod, o.reason)}, nil
	case o.initial:
		list = []Transition{found(o.pod)}
	default:
		list = Diff(reported, o.pod)
	}
	for i := range list {
		list[i].Seen = o.seen
	}
	return list, state
}

// backlog is the last reported state of a pod, and its unreported observations.
type backlog struct {
	// reported is the last state that was reported completely; nil before the first, and after
	// the end of the pod.
	reported *corev1.Pod
	// pending are the observations after reported, oldest first. Of the transitions of the
	// oldest observation, the number done has been reported.
	pending []observation
	done    int
}

// backlogs are the backlogs of all pods, by key. The handlers append to them, and the workers
// report them.
type backlogs struct {
	mu    sync.Mutex
	byKey map[string]*backlog
}

func newBacklogs() *backlogs { return &backlogs{byKey: map[string]*backlog{}} }

func (b *backlogs) add(key string, o observation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byKey[key] == nil {
		b.byKey[key] = &backlog{}
	}
	b.byKey[key].pending = append(b.byKey[key].pending, o)
}

// report reports the pending transitions of a pod, in order, until report returns an error. It
// repeats none of them. Callers must not call it concurrently for the same key.
func (b *backlogs) report(key string, report func(Transition) error) error {
	for {
		transitions, state, ok := b.next(key)
		if !ok {
			return nil
		}
		for _, t := range transitions {
			if err := report(t); err != nil {
				return err
			}
			b.advance(key)
		}
		b.finish(key, state)
	}
}

// next returns the unreported transitions of the oldest pending observation.
func (b *backlogs) next(key string) ([]Transition, *corev1.Pod, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.byKey[key]
	if entry == nil || len(entry.pending) == 0 {
		return nil, nil, false
	}
	transitions, state := entry.pending[0].transitions(entry.reported)
	return transitions[entry.done:], state, true
}

func (b *backlogs) advance(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byKey[key].done++
}

// finish removes the oldest pending observation, whose transitions were all reported.
func (b *backlogs) finish(key string, state *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.byKey[key]
	entry.reported, entry.done, entry.pending = state, 0, entry.pending[1:]
	if len(entry.pending) == 0 {
		entry.pending = nil
		if entry.reported == nil {
			delete(b.byKey, key)
		}
	}
}

// drop gives up the pending transitions of a pod, and returns their number. The last dropped
// state counts as reported: later states are compared with that state, so that each transition
// is either reported or counted.
func (b *backlogs) drop(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.byKey[key]
	if entry == nil {
		return 0
	}
	n := -entry.done
	reported := entry.reported
	for _, o := range entry.pending {
		transitions, state := o.transitions(reported)
		n, reported = n+len(transitions), state
	}
	if reported == nil {
		delete(b.byKey, key)
	} else {
		b.byKey[key] = &backlog{reported: reported}
	}
	return n
}
