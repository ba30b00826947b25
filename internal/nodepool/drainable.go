// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
)

// drainableInterval is the minimum time between two evaluations of whether nodes can be drained.
// drainableUpdate is the minimum time between two changes of a pool's condition "Drainable", except
// after an edit of the pool's spec. PodDisruptionBudgets and pods change frequently, and each
// change of the condition's message requires a write.
const (
	drainableInterval = 5 * time.Second
	drainableUpdate   = time.Minute
)

// drainableWorker periodically evaluates whether the nodes of pools can be drained, for the pools
// whose spec enables this. It runs only in the leader, in parallel with the reconciles.
type drainableWorker struct {
	cluster *state.Cluster
	feed    *eventFeed
	clock   clock.PassiveClock
	pods    podsByNode
	budgets budgetStore
	answers answers

	// withoutPlace maps each node of the evaluated pools to the number of its pods that would fit
	// on no other node if this node alone were drained. roomChanges is the value of the model's
	// change counter at which withoutPlace was computed. Unless the counter has changed,
	// withoutPlace is not computed again.
	withoutPlace map[string]int
	roomChanges  uint64
	history      drain.History

	mu      sync.Mutex
	tallies map[string]*drain.Tally
}

// podsByNode provides the cached pods of each node. It is implemented by [podcache.Workloads].
type podsByNode interface {
	EachNode(on func(node string) bool, do func(node string, running []drain.CachedPod)) error
	// Facts returns the Hasher that hashed the labels of the cached pods. It returns nil if the
	// cache does not keep the [drain.Facts] about pods.
	Facts() *drain.Hasher
}

// budgetStore is the part of an informer for PodDisruptionBudgets that holds the cached budgets.
type budgetStore interface {
	HasSynced() bool
	GetStore() toolscache.Store
}

// newDrainableWorker returns a worker that reads pods and PodDisruptionBudgets from the manager's
// cache.
func newDrainableWorker(mgr ctrl.Manager, cluster *state.Cluster, feed *eventFeed, c clock.PassiveClock) (*drainableWorker, error) {
	shared, ok := mgr.(interface{ PodsByWorkload() *podcache.Workloads })
	if !ok {
		return nil, fmt.Errorf("a %T does not look at pods", mgr)
	}
	informer, err := mgr.GetCache().GetInformer(context.Background(), &policyv1.PodDisruptionBudget{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("get the informer for PodDisruptionBudgets: %w", err)
	}
	budgets, ok := informer.(budgetStore)
	if !ok {
		return nil, fmt.Errorf("a %T does not list its objects", informer)
	}
	return &drainableWorker{
		cluster: cluster, feed: feed, clock: c, pods: shared.PodsByWorkload(), budgets: budgets, answers: answers{conditionType: tidekeeperv1.ConditionDrainable},
	}, nil
}

// NeedLeaderElection implements [sigs.k8s.io/controller-runtime/pkg/manager.LeaderElectionRunnable].
func (w *drainableWorker) NeedLeaderElection() bool { return true }

// Start implements [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (w *drainableWorker) Start(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), w.budgets.HasSynced) {
		return nil // The manager was stopped before its caches had synced.
	}
	return w.feed.evaluate(ctx, w.clock, drainableInterval, func(ctx context.Context) {
		if err := w.work(); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find out which nodes can be drained")
		}
	})
}

// work evaluates whether the nodes of all pools whose spec enables this can be drained. It queues
// each pool whose answer has changed for a reconcile.
func (w *drainableWorker) work() error {
	asks := state.DrainableAsks(w.cluster)
	if len(asks) == 0 {
		w.answers.replace(nil)
		w.publish(nil)
		w.withoutPlace, w.roomChanges, w.history = nil, 0, nil
		return nil
	}
	tallies, err := w.survey(asks)
	if err != nil {
		return err
	}
	now, found := w.clock.Now(), map[string]answer{}
	for _, ask := range asks {
		next := drainableAnswer(ask.Name, len(ask.Members), tallies[ask.Name])
		next.uid, next.generation, next.at = ask.UID, ask.Generation, now
		found[ask.Name] = w.settled(ask.Name, next)
	}
	w.publish(tallies)
	w.feed.push(state.Dirty{Pools: w.answers.replace(found)})
	return nil
}

// settled returns the answer to publish for a pool. This is the previous answer if `next`, the new
// answer, has the same content, or if the previous answer changed less than drainableUpdate ago.
// Otherwise, or if the pool's spec has been edited, it is `next`.
func (w *drainableWorker) settled(pool string, next answer) answer {
	last, known := w.answers.get(pool)
	if !known || last.uid != next.uid || last.generation != next.generation {
		return next
	}
	since := next.at.Sub(last.at)
	same := last.status == next.status && last.reason == next.reason && last.message == next.message
	if same || since >= 0 && since < drainableUpdate { // since is negative if the clock was set back.
		return last
	}
	return next
}

// survey evaluates whether the nodes of the given pools can be drained. It returns, by pool name, a
// tally of the nodes that cannot be drained and of the pods that block the drains.
func (w *drainableWorker) survey(asks []state.DrainableAsk) (map[string]*drain.Tally, error) {
	tallies, of := map[string]*drain.Tally{}, map[string][]*drain.Tally{}
	for _, ask := range asks {
		ignored := make([]drain.Reason, len(ask.Ignore))
		for i := range ask.Ignore {
			ignored[i] = drain.Reason(ask.Ignore[i])
		}
		t := drain.NewTally(ignored...)
		tallies[ask.Name] = t
		for _, node := range ask.Members {
			of[node] = append(of[node], t)
		}
	}
	w.simulate(asks)
	hasher := w.pods.Facts()
	if hasher == nil {
		return nil, errors.New("the cache of pods does not keep the facts about them")
	}
	var budgets []*drain.CachedBudget
	for _, object := range w.budgets.GetStore().List() {
		if budget, ok := object.(*drain.CachedBudget); ok {
			budgets = append(budgets, budget)
		}
	}
	survey := drain.NewSurvey(hasher, budgets, w.history, w.clock.Now())
	err := w.pods.EachNode(func(node string) bool { return of[node] != nil }, func(node string, running []drain.CachedPod) {
		survey.AddNode(node, running, w.withoutPlace[node], of[node])
	})
	if err != nil {
		return nil, fmt.Errorf("evaluate the drain of nodes: %w", err)
	}
	w.history = survey.History()
	return tallies, nil
}

// simulate updates withoutPlace for the nodes of each pool, unless the pool's spec ignores the
// blocker NoPlace, which means that no other node has room for a pod. It does nothing if the model
// has not changed since the last simulation.
func (w *drainableWorker) simulate(asks []state.DrainableAsk) {
	nodes := sets.New[string]()
	for _, ask := range asks {
		if !slices.Contains(ask.Ignore, tidekeeperv1.DrainBlockerNoPlace) {
			nodes.Insert(ask.Members...)
		}
	}
	if len(nodes) == 0 {
		w.withoutPlace, w.roomChanges = nil, 0
		return
	}
	cluster, changes := state.Room(w.cluster, w.roomChanges)
	if cluster == nil {
		return
	}
	w.withoutPlace, w.roomChanges = map[string]int{}, changes
	for node := range nodes {
		loss := cluster.Lose([]string{node}, nil)
		w.withoutPlace[node] = loss.Homeless()
	}
}

// publish sets the tallies that the metrics report, keyed by pool name.
func (w *drainableWorker) publish(tallies map[string]*drain.Tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tallies = tallies
}

// condition returns the condition "Drainable" for the pool's status, or nil if the spec does not
// enable it or the pool is being deleted.
func (w *drainableWorker) condition(pool *tidekeeperv1.NodePool) *metav1.Condition {
	if pool.Spec.Drainable == nil || !pool.DeletionTimestamp.IsZero() {
		return nil
	}
	return w.answers.condition(pool)
}
