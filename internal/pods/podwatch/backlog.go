// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// observation is an input of the watcher: a state of a pod that the API server has sent, the
// deletion of a pod, or an event about a pod.
type observation struct {
	seen time.Time
	pod  *corev1.Pod
	// initial is true if the pod already existed when the watch began.
	initial bool
	// gone is true if the pod no longer exists. reason explains how its deletion was observed.
	gone   bool
	reason string
	// event is an event about the pod; nil for other observations. If it is set, pod is not a new
	// state.
	event *corev1.Event
}

// transitions returns the transitions between the state reported, up to which a pod was reported,
// and the observation. It also returns the state up to which the pod is reported after these
// transitions.
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

// backlog holds a pod's last reported state and its unreported observations.
type backlog struct {
	// reported is the last state whose transitions were all reported. It is nil before the first
	// report and after the pod's deletion.
	reported *corev1.Pod
	// pending lists the observations after the state in reported, oldest first. done is the number
	// of transitions of the oldest observation that have been reported.
	pending []observation
	done    int
}

// backlogs holds the backlogs of all pods, keyed by namespace/name. The event handlers append
// observations, and the workers report them.
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

// report calls the given function for each pending transition of a pod, in order, until the
// function returns an error. The next call continues with the transition that failed. report must
// not be called concurrently for the same key.
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

// next returns the unreported transitions of a pod's oldest pending observation, and the state of
// the pod after these transitions. It returns false if no observation is pending.
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

// finish removes a pod's oldest pending observation after all its transitions have been reported.
// state is the state of the pod after these transitions.
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

// drop drops a pod's pending transitions and returns their number. The next state is compared with
// the last dropped state, so that each transition is either reported or counted as dropped.
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
