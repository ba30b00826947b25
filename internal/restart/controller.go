// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/order"
	"tidekeeper.dev/tidekeeper/internal/restart/query"
	"tidekeeper.dev/tidekeeper/internal/restart/scale"
)

// reconciler carries out the decisions that [decision.Decide] makes about ScheduledRestarts.
type reconciler struct {
	client   client.Client
	cache    client.Reader
	recorder events.EventRecorder
	wakeups  *wakeup.Wakeups[reconcile.Request]
	metrics  *metrics
	clock    clock.PassiveClock

	memories *memories
	misses   *missLimiter
	claims   *claims
	refusals *refusals
	defaults *defaults
	// queries evaluates the administrator's Prometheus queries; nil if no queries are configured.
	queries  *query.Evaluator
	slots    *slots
	gatherer *gatherer
	evictor  *evictor
	sender   *sender
	reporter *reporter

	mu sync.Mutex
	// leadingSince is the time at which this process was ready to decide as the leader, because it
	// had added the restarts in progress to the budget; zero before that.
	leadingSince time.Time
}

// connections holds the clients, caches and other external dependencies of the reconciler.
type connections struct {
	client           client.Client
	apiReader, cache client.Reader
	pods             *podcache.Workloads
	scales           *scale.Reader
	freezes          *freeze.Reader
	recorder         events.EventRecorder
	registry         prometheus.Registerer
	clock            clock.PassiveClock
	wakeups          *wakeup.Wakeups[reconcile.Request]
}

// newReconciler returns a reconciler, which receives no events of ConfigMaps and Secrets until
// [configReader.follow] is called.
func newReconciler(c connections, o Options) (*reconciler, error) {
	b, m := budget.New(o.MaxConcurrent, o.NamespaceShare), newMemories()
	metrics, err := newMetrics(c.registry, b, m, c.clock)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	r := &reconciler{
		client: c.client, cache: c.cache, recorder: c.recorder, wakeups: c.wakeups, metrics: metrics, clock: c.clock,
		memories: m, misses: newMissLimiter(m), claims: newClaims(o.MaxConcurrent, m), refusals: &refusals{m},
		defaults: &defaults{client: c.client, recorder: c.recorder, clock: c.clock, memories: m},
		reporter: &reporter{recorder: c.recorder, metrics: metrics, clock: c.clock, memories: m},
	}
	answered := func(key types.NamespacedName) { r.enqueue([]types.NamespacedName{key}) }
	if r.queries, err = query.New(o.Queries, metrics.queries, c.clock, answered); err != nil {
		return nil, fmt.Errorf("--restart-queries: %w", err)
	}
	r.slots = &slots{budget: b, apiReader: c.apiReader, clock: c.clock, age: o.SlotAge, enqueue: r.enqueue}
	r.sender = &sender{client: c.client, apiReader: c.apiReader, claims: r.claims, clock: c.clock}
	attempts := &evictionAttempts{m}
	r.evictor = &evictor{client: c.client, apiReader: c.apiReader, clock: c.clock, attempts: attempts, metrics: metrics.evictions, enqueue: r.enqueue}
	r.gatherer = &gatherer{
		client: c.client, clock: c.clock, freezes: c.freezes, order: &order.Graph{}, configs: &configReader{configs: newConfigs(m, o.ChangeSettle, r.enqueue), apiReader: c.apiReader},
		queries:  r.queries,
		targets:  &targets{client: c.client, apiReader: c.apiReader, cache: c.cache, pods: c.pods, scales: c.scales},
		pods:     &podReader{apiReader: c.apiReader, cache: c.cache, pods: c.pods},
		memories: m, claims: r.claims, evictions: attempts, refusals: r.refusals, slots: r.slots, overdue: metrics.overdue, storms: metrics.storms, changeSettle: o.ChangeSettle,
	}
	return r, nil
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
		// The ScheduledRestart was deleted. Do not stop a rollout in progress.
		r.forget(key)
		return ctrl.Result{}, nil
	}
	r.reporter.reportInvalidRequest(key, restart)

	use := slotUnknown
	// Defer the call, so that the slot is also kept or released if the code below panics.
	defer func() { r.slots.settle(ctx, key, use) }()
	// Hold the slot of the restart budget before any step that can fail. Otherwise users who can
	// cause failures could make a restart in progress run without a slot.
	outlives := r.slots.hold(key, restart)
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
	again, err := r.defaults.write(ctx, key, restart)
	if err == nil {
		d, target, err = r.gatherer.decide(ctx, key, restart, r.leader())
	}
	if err != nil {
		use = slotUseOf(restart)
		r.failed(ctx, request, restart, outlives, err)
		return ctrl.Result{}, err
	}
	if d.Needs == decision.NeedAnswer {
		// Keep the slot until the Prometheus queries have been answered. The answer triggers the
		// next reconcile.
		use = slotHeld
		return ctrl.Result{}, nil
	}
	if restart.Status.Active == nil {
		if turn := r.misses.turn(key, &d, r.clock.Now()); !turn.IsZero() {
			// The namespace's limit for reports of missed ticks (scheduled times of restarts) is
			// exhausted. This missed tick is reported later, and needs no slot until then.
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

// failed records an event for an error, after which the work queue retries the reconcile with
// backoff. If the restart in progress still holds a slot, the ScheduledRestart is also reconciled
// when the slot expires.
func (r *reconciler) failed(ctx context.Context, request ctrl.Request, restart *tidekeeperv1.ScheduledRestart, outlives time.Time, err error) {
	if !outlives.IsZero() {
		r.wakeups.Set(request, outlives)
	}
	// A conflict is retried without an event, and a deleted object needs no event.
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		r.recorder.Eventf(restart, nil, corev1.EventTypeWarning, tidekeeperv1.EventReconcileFailed, "Reconcile", "%s", err)
	}
}

// forget drops the in-memory state of a deleted ScheduledRestart, and releases its slot.
func (r *reconciler) forget(key types.NamespacedName) {
	r.wakeups.Set(reconcile.Request{NamespacedName: key}, time.Time{})
	r.memories.forget(key)
	r.queries.Forget(key)
	r.enqueue(r.slots.budget.Release(key))
}

// enqueue adds ScheduledRestarts to the work queue.
func (r *reconciler) enqueue(keys []types.NamespacedName) {
	for _, key := range keys {
		r.wakeups.Enqueue(reconcile.Request{NamespacedName: key})
	}
}

// deferred is called instead of a reconcile while the namespace has exhausted its limit of API
// requests, and sends no requests to the API server. It releases the slot of a restart if its
// ScheduledRestart was deleted, or if the restart has held its slot for the maximum time.
func (r *reconciler) deferred(ctx context.Context, request reconcile.Request) {
	key, restart := request.NamespacedName, &tidekeeperv1.ScheduledRestart{}
	switch err := r.cache.Get(ctx, key, restart, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err) || err == nil && !restart.DeletionTimestamp.IsZero():
		r.forget(key)
	case err == nil && !r.leader().IsZero():
		if outlives := r.slots.hold(key, restart); !outlives.IsZero() {
			r.wakeups.Set(request, outlives)
		}
	}
}

// lead adds the waiting restarts and the restarts in progress to the restart budget once this
// process has become the leader. Restarts in progress take their slots, so that a new leader does
// not exceed the budget. Waiting restarts are added first, so that a free slot goes to the
// namespace that uses the fewest slots.
func (r *reconciler) lead(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leadingSince.IsZero() {
		return nil
	}
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the restarts in progress: %w", err)
	}
	now := r.clock.Now()
	for i := range list.Items {
		if restart := &list.Items[i]; waitsForSlot(restart) {
			r.slots.budget.Expect(client.ObjectKeyFromObject(restart), now)
		}
	}
	for i := range list.Items {
		r.slots.hold(client.ObjectKeyFromObject(&list.Items[i]), &list.Items[i])
	}
	r.leadingSince = r.clock.Now().Round(0)
	return nil
}

// leader returns the time since which this process has made decisions as the leader. It is zero
// until [reconciler.lead] has added the restarts in progress to the restart budget, because without
// them this process could exceed the budget.
func (r *reconciler) leader() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leadingSince
}
