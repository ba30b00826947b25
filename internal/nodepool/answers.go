// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// evaluationShare is the ratio of the pause after an evaluation of all pools to the duration of
// that evaluation. longestPause is the maximum of such a pause. In a cluster of 5,000 nodes, an
// evaluation of the headroom or drainability of all pools takes seconds, and would take up much CPU
// time if it were repeated without these pauses.
const (
	evaluationShare = 20
	longestPause    = 5 * time.Minute
)

// evaluate calls `work` once the caches of pools, nodes and pods have synced, and then periodically
// until ctx is cancelled. interval is the minimum time between the end of a call and the next call.
func (f *eventFeed) evaluate(ctx context.Context, c clock.PassiveClock, interval time.Duration, work func(context.Context)) error {
	if err := f.nodeSource().WaitForSync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The manager was stopped before its caches had synced.
		}
		return err
	}
	for {
		start := c.Now()
		work(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(interval, min(longestPause, evaluationShare*c.Since(start)))):
		}
	}
}

// answers holds, for each pool, the latest result of a worker that periodically evaluates a
// property of pools, such as their headroom, in parallel with the reconciles. The reconciles read
// the result as a condition of the type conditionType.
type answers struct {
	conditionType string

	mu sync.Mutex
	of map[string]answer
}

// answer is the latest evaluation result for a pool, with the UID of the pool and the generation of
// the spec that was evaluated.
type answer struct {
	uid        types.UID
	generation int64
	status     metav1.ConditionStatus
	reason     string
	message    string
	// at is the time at which the answer last changed. It is zero for workers that do not limit how
	// often an answer changes.
	at time.Time
}

// replace replaces the answers of all pools with `now`, which is keyed by pool name. It returns the
// names of the pools whose answers are new or have changed.
func (a *answers) replace(now map[string]answer) (changed sets.Set[string]) {
	changed = sets.New[string]()
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range now {
		if a.of[name] != now[name] {
			changed.Insert(name)
		}
	}
	a.of = now
	return changed
}

// get returns the latest answer for the named pool, and whether there is one.
func (a *answers) get(pool string) (answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, known := a.of[pool]
	return found, known
}

// condition returns the condition to set in the status of a pool whose spec enables the evaluation.
// Until the current generation of the spec has been evaluated, this is the pool's existing
// condition, whose observedGeneration shows which generation it describes. If the pool has no such
// condition, the returned condition has the status Unknown.
func (a *answers) condition(pool *tidekeeperv1.NodePool) *metav1.Condition {
	found, known := a.get(pool.Name)
	if !known || found.uid != pool.UID || found.generation != pool.Generation {
		if has := meta.FindStatusCondition(pool.Status.Conditions, a.conditionType); has != nil {
			return has.DeepCopy()
		}
		found = answer{status: metav1.ConditionUnknown, reason: tidekeeperv1.ReasonNotEvaluated, message: "not evaluated yet"}
	}
	return &metav1.Condition{
		Type: a.conditionType, Status: found.status, Reason: found.reason, Message: found.message, ObservedGeneration: pool.Generation,
	}
}

// asked maps the condition types that a pool's spec can enable (Headroom and Drainable) to the
// conditions to set in the pool's status. The value is nil for a type that the spec does not
// enable.
type asked map[string]*metav1.Condition

// setIn sets the conditions of `a` in a pool's status, and removes from the status the conditions
// whose value in `a` is nil. now becomes the transition time of changed conditions.
func (a asked) setIn(status *tidekeeperv1.NodePoolStatus, now time.Time) {
	for _, conditionType := range slices.Sorted(maps.Keys(a)) {
		condition := a[conditionType]
		if condition == nil {
			meta.RemoveStatusCondition(&status.Conditions, conditionType)
			continue
		}
		condition.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, *condition)
	}
}
