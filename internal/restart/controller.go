// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/podcache"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/order"
	"tidekeeper.dev/tidekeeper/internal/restart/query"
	"tidekeeper.dev/tidekeeper/internal/restart/scale"
	"tidekeeper.dev/tidekeeper/internal/wakeup"
)

// reconciler carries out what [decision.Decide] decides about one ScheduledRestart.
type reconciler struct {
	client client.Client
	// apiReader reads from the API server.
	apiReader client.Reader
	// cache is read directly for kinds that may not be in it: the client would start to
	// watch them.
	cache client.Reader
	// pods looks at the pods in the cache.
	pods     *podcache.Workloads
	recorder events.EventRecorder
	budget   *budget.Budget
	misses   *missLimiter
	claims   *claims
	freezes  *freeze.Reader
	scales   *scale.Reader
	configs  *configReader
	order    *order.Graph
	// queries is nil if the manager's operator has none.
	queries   *query.Evaluator
	evictions *evictionAttempts
	refusals  *refusals
	defaults  *defaults
	// slotAge is how long a restart uses a slot of the budget.
	slotAge time.Duration
	// changeSettle is how long the content that pods use must not have changed.
	changeSettle time.Duration
	wakeups      *wakeup.Wakeups[reconcile.Request]
	metrics      *metrics
	clock        clock.PassiveClock

	mu sync.Mutex
	// leadingSince is when this process began to decide, with a budget that includes the
	// restarts that were in progress before; zero means that it has not begun.
	leadingSince time.Time
	// sent is the tick that this process sent last, for each restart in progress.
	sent map[types.NamespacedName]sentTick
	// reportedRequests are the invalid requests for which an event was recorded.
	reportedRequests map[types.NamespacedName]string
}

type sentTick struct {
	uid  types.UID
	tick time.Time
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	if err := r.lead(ctx); err != nil {
		return ctrl.Result{}, err
	}
	restart := &tidekeeperv1.ScheduledRestart{}
	if err := r.client.Get(ctx, key, restart); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(key)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !restart.DeletionTimestamp.IsZero() {
		// The rollout of a restart in progress is left alone.
		r.forget(key)
		return ctrl.Result{}, nil
	}
	r.reportInvalidRequest(key, restart)

	use := slotUnknown
	// Also if something below panics.
	defer func() { r.settleSlot(ctx, key, use) }()
	// Before all that can fail: users who may edit objects of the namespace can cause that.
	outlives := r.holdSlot(key, restart)
	if until := r.refusals.until(key, restart.UID, r.clock.Now()); !until.IsZero() {
		use = slotUseOf(restart)
		if !outlives.IsZero() && outlives.Before(until) {
			until = outlives
		}
		r.wakeups.Set(request, until)
		return ctrl.Result{}, nil
	}
	var d decision.Output
	var target *target
	again, err := r.writeDefault(ctx, key, restart)
	if err == nil {
		d, target, err = r.decide(ctx, key, restart)
	}
	if err != nil {
		use = slotUseOf(restart)
		r.failed(ctx, request, restart, outlives, err)
		return ctrl.Result{}, err
	}
	if d.Needs == decision.NeedAnswer {
		// The answer has it reconciled again.
		use = slotHeld
		return ctrl.Result{}, nil
	}
	if restart.Status.Active == nil {
		if turn := r.misses.turn(key, &d, r.clock.Now()); !turn.IsZero() {
			// Too many ticks of this namespace are missed at once: this one is reported
			// later.
			use = slotFree
			r.wakeups.Set(request, turn)
			return ctrl.Result{}, nil
		}
	}
	use, err = r.carryOut(ctx, key, restart, target, &d)
	if err != nil {
		r.failed(ctx, request, restart, outlives, err)
		return ctrl.Result{}, err
	}
	if !again.IsZero() && (d.Wake.IsZero() || again.Before(d.Wake)) {
		d.Wake = again
	}
	r.wakeups.Set(request, d.Wake)
	return ctrl.Result{}, nil
}

// failed records an event for an error, after which the reconcile is tried again with growing
// delays, and wakes when the restart in progress outlives its slot, unless it has.
func (r *reconciler) failed(ctx context.Context, request ctrl.Request, restart *tidekeeperv1.ScheduledRestart, outlives time.Time, err error) {
	if !outlives.IsZero() {
		r.wakeups.Set(request, outlives)
	}
	// An object that no longer exists needs no event.
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		r.recorder.Eventf(restart, nil, corev1.EventTypeWarning, tidekeeperv1.EventReconcileFailed, "Reconcile", "%s", err)
	}
}

// reportInvalidRequest records one event for each invalid value of the annotation that
// requests a restart.
func (r *reconciler) reportInvalidRequest(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) {
	_, err := decision.RequestedTime(restart, r.clock.Now())
	value := restart.Annotations[tidekeeperv1.RestartNowAnnotation]
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		delete(r.reportedRequests, key)
	case r.reportedRequests[key] != value:
		r.reportedRequests[key] = value
		r.recorder.Eventf(restart, nil, corev1.EventTypeWarning, tidekeeperv1.EventInvalidRequest, "Restart", "%s", err)
	}
}

// forget drops what is kept of a ScheduledRestart that was deleted.
func (r *reconciler) forget(key types.NamespacedName) {
	r.wakeups.Set(reconcile.Request{NamespacedName: key}, time.Time{})
	r.metrics.schedules.set(key, "")
	r.metrics.overdue.forget(key)
	r.metrics.storms.forget(key)
	r.configs.forget(key)
	r.evictions.forget(key)
	r.refusals.forget(key)
	r.defaults.forget(key)
	r.mu.Lock()
	delete(r.sent, key)
	delete(r.reportedRequests, key)
	r.mu.Unlock()
	r.misses.forget(key)
	r.claims.forget(key)
	r.queries.Forget(key)
	r.enqueue(r.budget.Release(key))
}

// enqueue has ScheduledRestarts reconciled now.
func (r *reconciler) enqueue(keys []types.NamespacedName) {
	for _, key := range keys {
		r.wakeups.Enqueue(reconcile.Request{NamespacedName: key})
	}
}

func (r *reconciler) rememberSent(key types.NamespacedName, uid types.UID, tick time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[key] = sentTick{uid, tick}
}

func (r *reconciler) lastSent(key types.NamespacedName, uid types.UID) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent, ok := r.sent[key]; ok && sent.uid == uid {
		return sent.tick
	}
	return time.Time{}
}
