// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// sighting is a state of a pod as the API server sent it, or that it is gone.
type sighting struct {
	seen time.Time
	pod  *corev1.Pod
	// first: the pod was there before anybody looked.
	first bool
	// gone: it is no more, for the reason that is told.
	gone   bool
	reason string
}

// transitions returns what a sighting adds to what was told of a pod, and the
// state that is told with it. It has no side effects.
func (s sighting) transitions(told *corev1.Pod) ([]Transition, *corev1.Pod) {
	var list []Transition
	state := s.pod
	switch {
	case s.gone:
		list, state = []Transition{gone(s.pod, s.reason)}, nil
	case s.first:
		list = []Transition{found(s.pod)}
	default:
		list = Diff(told, s.pod)
	}
	for i := range list {
		list[i].Seen = s.seen
	}
	return list, state
}

// story is what is told of a pod, and what is not yet.
type story struct {
	// told is the last state that was told to the end; nil before the first and
	// when the pod is gone.
	told *corev1.Pod
	// untold are those since, oldest first; of the first of them, so many
	// transitions are told.
	untold []sighting
	done   int
}

// stories are those of all pods, by key. The handlers add to them, and the
// workers tell.
type stories struct {
	mu  sync.Mutex
	all map[string]*story
}

func (s *stories) add(key string, next sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] == nil {
		s.all[key] = &story{}
	}
	s.all[key].untold = append(s.all[key].untold, next)
}

// tell tells what is not told yet of a pod, in order, until that fails. What was
// told is not told again. Of one key, there is one call at a time.
func (s *stories) tell(key string, tell func(Transition) error) error {
	for {
		transitions, state, ok := s.next(key)
		if !ok {
			return nil
		}
		for _, t := range transitions {
			if err := tell(t); err != nil {
				return err
			}
			s.advance(key)
		}
		s.finish(key, state)
	}
}

// next returns what is not told of the oldest sighting that is not told.
func (s *stories) next(key string) ([]Transition, *corev1.Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.all[key]
	if of == nil || len(of.untold) == 0 {
		return nil, nil, false
	}
	transitions, state := of.untold[0].transitions(of.told)
	return transitions[of.done:], state, true
}

func (s *stories) advance(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[key].done++
}

// finish puts the oldest sighting behind.
func (s *stories) finish(key string, state *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.all[key]
	of.told, of.done, of.untold = state, 0, of.untold[1:]
	if len(of.untold) == 0 {
		of.untold = nil
		if of.told == nil {
			delete(s.all, key)
		}
	}
}

// drop gives up what is not told of a pod, and returns how many transitions that
// was. The story goes on from the state that is given, nil if there is no pod.
func (s *stories) drop(key string, pod *corev1.Pod) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.all[key]
	if of == nil {
		return 0
	}
	n := -of.done
	told := of.told
	for _, next := range of.untold {
		transitions, state := next.transitions(told)
		n, told = n+len(transitions), state
	}
	if pod == nil {
		delete(s.all, key)
	} else {
		s.all[key] = &story{told: pod}
	}
	return n
}
