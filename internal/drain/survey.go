// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Patience is the time for which a blocker that may disappear by itself must exist to count as
// lasting. Such blockers are budgets that allow no disruption, as during each rollout, pods that
// are being deleted, and pods that no other node has room for.
const Patience = 5 * time.Minute

// PodKind identifies pods that differ only in name, node and times.
type PodKind struct {
	Namespace unique.Handle[string]
	Facts     Facts
	// Ready is true if the pods' condition Ready is True.
	Ready bool
	// Shared identifies all fields of the pods that the other fields of PodKind do not determine.
	// It must be comparable.
	Shared any
}

// CachedPod is a pod in a cache that keeps the [Facts] about each pod.
type CachedPod struct {
	PodKind
	Name    string
	Deleted *metav1.Time
	// Source returns the pod as stored in the cache, including its owner and phase. It is called
	// once for each kind of pods.
	Source interface{ Pod() *corev1.Pod }
}

// Survey finds the blockers of the drains of many nodes in a cache of pods and budgets. Each node
// is evaluated as if no other node were drained. For each node, Survey finds the same blockers as
// [World.Blockers], except for blockers that depend on volumes. Each kind of pods is evaluated
// once, so the cost depends on the number of kinds rather than on the number of pods.
type Survey struct {
	hasher *Hasher
	now    time.Time
	// budgets groups the budgets by namespace. matchings has an entry for each namespace in which
	// pods were evaluated.
	budgets   map[string][]*CachedBudget
	matchings map[string]*matching
	kinds     map[PodKind]*verdict
	history   History
	seen      History
}

// History maps blockers without a known start to the time at which a survey first found them. The
// key of a blocking budget consists of the reason, the namespace and the object. The key of the
// pods of a node that fit on no other node consists of the reason and the node. A nil History means
// that there was no earlier survey.
type History map[string]time.Time

// verdict is the result of evaluating a kind of pods (see [PodKind]). The blockers do not apply to
// pods that are already being deleted.
type verdict struct {
	leaves    bool
	namespace string
	workload  string // such as Deployment/web; empty for pods without a controller
	blockers  []Blocker
	// uncertain is true if it is unknown which budgets select the pods, and no known budget blocks
	// their eviction.
	uncertain bool
}

// NewSurvey returns a Survey at the given time. The facts about the pods must come from the given
// Hasher. history is the History of the previous survey. It is nil for the first survey, in which
// blockers without a known start count as lasting.
func NewSurvey(h *Hasher, budgets []*CachedBudget, history History, now time.Time) *Survey {
	s := &Survey{
		hasher: h, now: now, budgets: map[string][]*CachedBudget{}, matchings: map[string]*matching{}, kinds: map[PodKind]*verdict{},
		history: history, seen: History{},
	}
	for _, b := range budgets {
		s.budgets[b.Namespace] = append(s.budgets[b.Namespace], b)
	}
	return s
}

// History returns the History for the next survey.
func (s *Survey) History() History { return s.seen }

// AddNode adds the blockers of a node's pods to the given tallies, which belong to the pools of the
// node. withoutPlace is the number of the node's pods for which the other nodes have no room.
func (s *Survey) AddNode(node string, running []CachedPod, withoutPlace int, pools []*Tally) {
	for _, t := range pools {
		t.begin(node)
	}
	for i := range running {
		s.addPod(&running[i], pools)
	}
	if withoutPlace > 0 {
		lasting := s.lastsSinceFound(fmt.Sprintf("%s/%s", NoPlace, node))
		for _, t := range pools {
			t.add(&Blocker{Reason: NoPlace}, withoutPlace, lasting)
		}
	}
}

func (s *Survey) addPod(pod *CachedPod, pools []*Tally) {
	v := s.verdict(pod)
	if !v.leaves {
		return
	}
	if pod.Deleted != nil {
		if !pod.Deleted.After(s.now) {
			for _, t := range pools {
				t.add(&Blocker{Reason: Terminating, Namespace: v.namespace, Workload: v.workload, Since: pod.Deleted}, 1, s.now.Sub(pod.Deleted.Time) >= Patience)
			}
		}
		return
	}
	for i := range v.blockers {
		b := &v.blockers[i]
		lasting := s.lasts(b)
		for _, t := range pools {
			t.add(b, 1, lasting)
		}
	}
	if v.uncertain {
		for _, t := range pools {
			t.addUncertain(v.namespace)
		}
	}
}

// lasts reports whether a blocker is permanent, because it does not disappear by itself, or has
// lasted for at least [Patience].
func (s *Survey) lasts(b *Blocker) bool {
	switch {
	case b.Reason != Budget:
		return true
	case b.Since != nil:
		return s.now.Sub(b.Since.Time) >= Patience
	default:
		return s.lastsSinceFound(fmt.Sprintf("%s/%s/%s", b.Reason, b.Namespace, b.Object))
	}
}

// lastsSinceFound reports whether the blocker with the given key of [History] was first found at
// least [Patience] ago.
func (s *Survey) lastsSinceFound(key string) bool {
	at, known := s.history[key]
	switch {
	case s.history == nil:
		at = s.now.Add(-Patience)
	case !known || at.After(s.now): // The clock may have been set back.
		at = s.now
	}
	s.seen[key] = at
	return s.now.Sub(at) >= Patience
}

// verdict returns the evaluation of the pods that have the same kind as the given pod. The
// evaluation is computed once for each kind.
func (s *Survey) verdict(of *CachedPod) *verdict {
	if v, known := s.kinds[of.PodKind]; known {
		return v
	}
	pod, is := of.Source.Pod(), of.Facts.flags()
	v := &verdict{leaves: Leaves(pod) && is&static == 0, namespace: of.Namespace.Value()}
	s.kinds[of.PodKind] = v
	if !v.leaves {
		return v
	}
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller != nil {
		v.workload = pods.WorkloadName(pod)
	}
	add := func(b *Blocker) {
		b.Namespace, b.Workload = v.namespace, v.workload
		v.blockers = append(v.blockers, *b)
	}
	if pod.Status.Phase != corev1.PodPending {
		found := s.matching(v.namespace).of(of.Facts)
		b := found.refusal(of.Ready)
		if b != nil {
			add(b)
		}
		v.uncertain = found.uncertain && b == nil
	}
	for _, rule := range []struct {
		reason Reason
		blocks bool
	}{
		{Finalizer, is&finalizer != 0 || is&jobFinalizer != 0 && !isOfJob(controller)},
		{LongGrace, is&longGrace != 0},
		{NoController, !pods.IsReplaced(pod)},
		{LocalData, is&localData != 0},
	} {
		if rule.blocks {
			add(&Blocker{Reason: rule.reason})
		}
	}
	v.uncertain = v.uncertain || !of.Facts.known()
	return v
}

// refusal returns the blocker of a pod whose eviction the budgets in m currently do not allow, or
// nil if they allow it. If m.uncertain is set, another budget may still reject the eviction.
func (m match) refusal(isReady bool) *Blocker {
	switch len(m.of) {
	case 0:
		return nil
	case 1:
		return m.of[0].refusal(isReady)
	default:
		return &Blocker{Reason: SeveralBudgets, Object: "PodDisruptionBudget/" + min(m.of[0].Name, m.of[1].Name)}
	}
}

// matching returns the matching that finds the budgets of the given namespace that select a pod. It
// is created at the first call for the namespace.
func (s *Survey) matching(namespace string) *matching {
	m, known := s.matchings[namespace]
	if !known {
		m = newMatching(s.hasher, s.budgets[namespace])
		s.matchings[namespace] = m
	}
	return m
}
