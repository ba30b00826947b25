// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// headroomInterval is the minimum time between two headroom evaluations.
const headroomInterval = 5 * time.Second

// maxAmountsText is the maximum length, in bytes, of the list of requested amounts in a condition
// message. A limit is needed because pods may request any number of resources.
const maxAmountsText = 200

// headroomWorker periodically evaluates whether each pool has the headroom that its spec requires,
// that is, whether the pods of a lost node or zone would fit on the remaining nodes. It runs only
// in the leader, in parallel with the reconciles.
type headroomWorker struct {
	cluster *state.Cluster
	feed    *eventFeed
	clock   clock.PassiveClock
	answers answers
}

func newHeadroomWorker(cluster *state.Cluster, feed *eventFeed, c clock.PassiveClock) *headroomWorker {
	return &headroomWorker{cluster: cluster, feed: feed, clock: c, answers: answers{conditionType: tidekeeperv1.ConditionHeadroom}}
}

// NeedLeaderElection implements [sigs.k8s.io/controller-runtime/pkg/manager.LeaderElectionRunnable].
func (w *headroomWorker) NeedLeaderElection() bool { return true }

// Start implements [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (w *headroomWorker) Start(ctx context.Context) error {
	var seen uint64
	return w.feed.evaluate(ctx, w.clock, headroomInterval, func(context.Context) { seen = w.work(seen) })
}

// work evaluates the headroom of all pools whose spec requires headroom, and queues each pool whose
// result has changed. It returns the current value of the model's change counter. If this still
// equals `since`, the value that the previous call returned, work does nothing.
func (w *headroomWorker) work(since uint64) uint64 {
	asks, cluster, now := w.cluster.HeadroomAsks(since)
	if now == since {
		return since
	}
	found := map[string]answer{}
	for _, ask := range asks {
		of := answerOf(cluster.Headroom(ask.Members, ask.Headroom), ask.Headroom)
		of.uid, of.generation = ask.UID, ask.Generation
		found[ask.Name] = of
	}
	w.feed.push(state.Dirty{Pools: w.answers.replace(found)})
	return now
}

// condition returns the condition "Headroom" for the pool's status, or nil if the spec requires no
// headroom or the pool is being deleted.
func (w *headroomWorker) condition(pool *tidekeeperv1.NodePool) *metav1.Condition {
	if pool.Spec.Headroom == nil || !pool.DeletionTimestamp.IsZero() {
		return nil
	}
	return w.answers.condition(pool)
}

// answerOf converts an evaluation result to the status, reason and message of the condition
// "Headroom".
func answerOf(h capacity.Headroom, ask tidekeeperv1.Headroom) answer {
	switch n := h.Homeless(); {
	case h.NoNodes:
		return answer{status: metav1.ConditionUnknown, reason: tidekeeperv1.ReasonNoNodes, message: "the pool has no nodes"}
	case n > 0:
		return answer{
			status: metav1.ConditionFalse, reason: tidekeeperv1.ReasonNoPlace,
			message: fmt.Sprintf("if %s is lost, no place is found for %d of its %s, which %s %s: see kubectl tide pools loss",
				h.Lost, n, podCount(h.Pods), plural(n, "requests", "request"), text.Shorten(resources.Text(h.Requests), maxAmountsText)),
		}
	case h.NoZones:
		return answer{status: metav1.ConditionUnknown, reason: tidekeeperv1.ReasonNoZones, message: "no node of the pool has the label topology.kubernetes.io/zone"}
	}
	var of []string
	if ask.Nodes > 0 {
		of = append(of, "node")
	}
	if ask.Zones > 0 {
		of = append(of, "zone")
	}
	return answer{
		status: metav1.ConditionTrue, reason: tidekeeperv1.ReasonEnoughRoom,
		message: fmt.Sprintf("if any one %s is lost, there is a place for its pods", strings.Join(of, " or ")),
	}
}

func podCount(n int) string { return fmt.Sprintf("%d %s", n, plural(n, "pod", "pods")) }
