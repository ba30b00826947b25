// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
)

// evictions is the state of the simulated pods and of their evictions.
type evictions struct {
	// each lists the pods; nil if restarts do not evict pods in this case. contentOf maps each pod
	// to the content with which it was started.
	each      []evict.Pod
	contentOf map[types.UID]content
	// created is the number of pods that were ever created. youngest is the creation time of the
	// last pod.
	created  int
	youngest time.Time
	// forbidden is true while a PodDisruptionBudget allows no eviction. attempts describes the
	// current manager's eviction attempts.
	forbidden bool
	attempts  Attempts
	// atStart is the set of pods that existed when the restart in progress started.
	atStart map[types.UID]bool
	// evicted and refused count the accepted and rejected evictions.
	evicted, refused int
}

// drawMethod makes restarts evict pods in a fifth of the cases.
func (s *simulation) drawMethod(seed uint64) {
	if seed%5 != 3 {
		return
	}
	s.restart.Spec.Method = tidekeeperv1.MethodEvict
	s.contentOf = map[types.UID]content{}
	if s.random.IntN(3) == 0 {
		s.restart.Spec.MaxUnavailable = new(intstr.FromInt32(int32(1 + s.random.IntN(3))))
	}
}

// editMethod sometimes changes the restart method, in which case no other field is edited. It
// returns false if it changes nothing.
func (s *simulation) editMethod(after *tidekeeperv1.ScheduledRestart) bool {
	if s.contentOf == nil || s.random.IntN(4) > 0 {
		return false
	}
	after.Spec.Method, after.Spec.MaxUnavailable = tidekeeperv1.MethodEvict, nil
	if s.random.IntN(2) == 0 {
		after.Spec.Method = tidekeeperv1.MethodRollout
	}
	s.log("the method becomes %s", after.Spec.Method)
	s.olderRestart, s.restart = s.restart, after
	return true
}

// add creates a pod at the given time, or later if needed: creation times always increase, even if
// the clock is set back.
func (s *simulation) add(at time.Time, c content, ready bool) {
	if at = at.Truncate(time.Second); !at.After(s.youngest) && s.created > 0 {
		at = s.youngest.Add(time.Second)
	}
	s.created++
	uid := types.UID(fmt.Sprint("pod-", s.created))
	s.each = append(s.each, evict.Pod{Name: string(uid), UID: uid, Created: at, Ready: ready})
	s.contentOf[uid], s.youngest = c, at
}

// replaceAll replaces all pods, as a rollout does.
func (s *simulation) replaceAll(at time.Time, c content) {
	if s.contentOf == nil {
		return
	}
	s.each = nil
	for range 3 {
		s.add(at, c, true)
	}
	s.noteOldest()
}

// noteOldest sets the simulated age and content of the pods to the age and content of the oldest
// pod.
func (s *simulation) noteOldest() {
	oldest := slices.MinFunc(s.each, func(a, b evict.Pod) int { return a.Created.Compare(b.Created) })
	s.pods, s.podsContent = oldest.Created, s.contentOf[oldest.UID]
}

// settlePods lets pods become ready or break, and sometimes adds or removes a PodDisruptionBudget.
func (s *simulation) settlePods() {
	for i := range s.each {
		s.each[i].Ready = !s.unsound(6)
	}
	if s.contentOf != nil && s.random.IntN(6) == 0 {
		s.forbidden = s.unsound(2)
	}
}

func (s *simulation) lookAtPods() *Pods {
	if s.sound {
		s.forbidden = false
		s.settlePods()
	}
	s.attempts.LookedAt = s.now
	return &Pods{Active: slices.Clone(s.each)}
}

// evictPods evicts the pods in the output. If the status write has just started a restart by
// eviction, it first checks that the restart may start.
func (s *simulation) evictPods(d *Output) {
	if !d.Started.IsZero() {
		trigger := d.Status.Active.Trigger
		s.starts[start{d.Started, trigger}]++
		s.log("the tick of %s is started by eviction", formatTime(d.Started))
		s.check(d.Started, s.target, trigger)
		if trigger == tidekeeperv1.TriggerChange {
			s.checkChange(d.Started)
		}
		s.sent, s.attempts, s.atStart = d.Started, Attempts{}, map[types.UID]bool{}
		for _, pod := range s.each {
			s.atStart[pod.UID] = true
		}
	}
	for _, pod := range d.Evict {
		if s.dies("before it evicts a pod") {
			return
		}
		if s.forbidden || s.unsound(8) {
			if s.attempts.Refusal == "" {
				s.attempts.RefusedSince = s.now
			}
			s.attempts.Refusal, s.attempts.RefusedAt, s.attempts.Evicted = "an eviction is refused: the budget b", s.now, false
			s.refused++
			s.log("the eviction of %s is refused", pod.Name)
			return
		}
		s.evict(pod, d)
		if s.dies("before it gets the response") {
			return
		}
		s.attempts.Evicted, s.attempts.Refusal, s.attempts.RefusedAt, s.attempts.RefusedSince = true, "", s.now, s.now
	}
}

// evict evicts and replaces a pod, and panics if the pod must not be evicted.
func (s *simulation) evict(pod evict.Pod, d *Output) {
	active := d.Status.Active
	i := slices.IndexFunc(s.each, func(p evict.Pod) bool { return p.UID == pod.UID })
	switch {
	case i < 0:
		s.log("%s is gone", pod.Name)
		return
	case active == nil || active.Eviction == nil:
		panic(fmt.Sprintf("%s is evicted while no restart is in progress", pod.Name))
	case !s.atStart[pod.UID] || !pod.Created.Before(active.ScheduledTime.Time):
		panic(fmt.Sprintf("%s of %s is evicted for the tick of %s, and was not there before", pod.Name, formatTime(pod.Created), formatTime(active.ScheduledTime.Time)))
	}
	ready := 0
	for _, other := range s.each {
		if other.Ready {
			ready++
		}
	}
	if limit := int(evict.Limit(s.restart.Spec.MaxUnavailable, 3)); pod.Ready && 3-ready+1 > limit {
		panic(fmt.Sprintf("%s is evicted with %d of 3 ready, and %d may be unavailable", pod.Name, ready, limit))
	}
	s.log("%s is evicted", pod.Name)
	s.evicted++
	s.olderPods = s.pods
	s.each = slices.Delete(s.each, i, i+1)
	s.add(s.now, s.content, false)
	s.noteOldest()
}
