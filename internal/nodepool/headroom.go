// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// headroomInterval is the minimum time between two headroom evaluations. An evaluation covers all
// pools and takes seconds in a cluster of 5,000 nodes, so the worker also waits headroomShare times
// as long as the last evaluation took.
const (
	headroomInterval = 5 * time.Second
	headroomShare    = 20
)

// maxAmountsText is the maximum length, in bytes, of the list of requested amounts in a condition
// message. A limit is needed because pods may request any number of resources.
const maxAmountsText = 200

// headroomWorker periodically evaluates whether each pool has the headroom that its spec requires.
// It runs only in the leader, in parallel with the reconciles.
type headroomWorker struct {
	cluster *state.Cluster
	feed    *eventFeed
	clock   clock.PassiveClock

	mu      sync.Mutex
	answers map[string]headroomAnswer
}

// headroomAnswer is the result of evaluating the headroom of a pool at a generation of its spec.
type headroomAnswer struct {
	uid        types.UID
	generation int64
	status     metav1.ConditionStatus
	reason     string
	message    string
}

// NeedLeaderElection implements [sigs.k8s.io/controller-runtime/pkg/manager.LeaderElectionRunnable].
func (w *headroomWorker) NeedLeaderElection() bool { return true }

// Start implements [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (w *headroomWorker) Start(ctx context.Context) error {
	if err := w.feed.nodeSource().WaitForSync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The manager was stopped before its caches had synced.
		}
		return err
	}
	var seen uint64
	for {
		start := w.clock.Now()
		seen = w.work(seen)
		wait := max(headroomInterval, headroomShare*w.clock.Since(start))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// work evaluates the headroom of all pools that require it, and queues each pool whose result
// differs from its previous result. It does nothing if the model's change counter still equals
// `since`. It returns the current value of the counter.
func (w *headroomWorker) work(since uint64) uint64 {
	asks, cluster, now := w.cluster.HeadroomAsks(since)
	if now == since {
		return since
	}
	answers := map[string]headroomAnswer{}
	for _, ask := range asks {
		answer := answerOf(cluster.Headroom(ask.Members, ask.Headroom), ask.Headroom)
		answer.uid, answer.generation = ask.UID, ask.Generation
		answers[ask.Name] = answer
	}
	changed := sets.New[string]()
	w.mu.Lock()
	for name, answer := range answers {
		if w.answers[name] != answer {
			changed.Insert(name)
		}
	}
	w.answers = answers
	w.mu.Unlock()
	w.feed.push(state.Dirty{Pools: changed})
	return now
}

// answer returns the headroom result for the pool's current generation, and whether that generation
// has been evaluated yet.
func (w *headroomWorker) answer(pool *tidekeeperv1.NodePool) (headroomAnswer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, known := w.answers[pool.Name]
	return a, known && a.uid == pool.UID && a.generation == pool.Generation
}

// condition returns the condition "Headroom" for the pool's status, or nil if the spec requires no
// headroom. After an edit or a change of leaders, the current generation has not been evaluated
// yet. Until it has been, the existing condition is kept, because its observedGeneration shows
// which spec it describes.
func (w *headroomWorker) condition(pool *tidekeeperv1.NodePool) *metav1.Condition {
	if pool.Spec.Headroom == nil || !pool.DeletionTimestamp.IsZero() {
		return nil
	}
	answer, known := w.answer(pool)
	if !known {
		if has := meta.FindStatusCondition(pool.Status.Conditions, tidekeeperv1.ConditionHeadroom); has != nil {
			return has.DeepCopy()
		}
		answer = headroomAnswer{status: metav1.ConditionUnknown, reason: tidekeeperv1.ReasonNotEvaluated, message: "not evaluated yet"}
	}
	return &metav1.Condition{
		Type: tidekeeperv1.ConditionHeadroom, Status: answer.status, Reason: answer.reason, Message: answer.message, ObservedGeneration: pool.Generation,
	}
}

// answerOf converts an evaluation result to the status, reason and message of the condition
// "Headroom".
func answerOf(h capacity.Headroom, ask tidekeeperv1.Headroom) headroomAnswer {
	switch n := h.Homeless(); {
	case h.NoNodes:
		return headroomAnswer{status: metav1.ConditionUnknown, reason: tidekeeperv1.ReasonNoNodes, message: "the pool has no nodes"}
	case n > 0:
		return headroomAnswer{
			status: metav1.ConditionFalse, reason: tidekeeperv1.ReasonNoPlace,
			message: fmt.Sprintf("if %s is lost, no place is found for %d of its %s, which %s %s: see kubectl tide pools loss",
				h.Lost, n, podCount(h.Pods), plural(n, "requests", "request"), text.Shorten(resources.Text(h.Requests), maxAmountsText)),
		}
	case h.NoZones:
		return headroomAnswer{status: metav1.ConditionUnknown, reason: tidekeeperv1.ReasonNoZones, message: "no node of the pool has the label topology.kubernetes.io/zone"}
	}
	var of []string
	if ask.Nodes > 0 {
		of = append(of, "node")
	}
	if ask.Zones > 0 {
		of = append(of, "zone")
	}
	return headroomAnswer{
		status: metav1.ConditionTrue, reason: tidekeeperv1.ReasonEnoughRoom,
		message: fmt.Sprintf("if any one %s is lost, there is a place for its pods", strings.Join(of, " or ")),
	}
}

func podCount(n int) string { return fmt.Sprintf("%d %s", n, plural(n, "pod", "pods")) }
