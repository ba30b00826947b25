// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/manager/index"
)

// verifyDelay is how long to wait if the API server knows of nodes that carry
// something of a pool and the cache does not yet.
const verifyDelay = time.Second

// poolReconciler looks after one pool's finalizer, RuntimeClass, evictions,
// status and events.
type poolReconciler struct {
	client client.Client
	// live reads past the cache.
	live     client.Reader
	recorder events.EventRecorder
	fleet    *fleet
	feed     *feed
	metrics  *metrics
	clock    clock.PassiveClock
	options  Options

	// written is when the status of each pool was last written. Only one
	// worker runs, so it needs no lock.
	written map[string]time.Time
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *poolReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.fleet.tell()
	pool := &tidekeeperv1.NodePool{}
	if err := r.client.Get(ctx, request.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			r.metrics.forget(request.Name)
			delete(r.written, request.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	v, known := r.fleet.view(pool.Name)
	if !known || v.pool.UID != pool.UID || v.pool.Generation != pool.Generation {
		// The model is a moment behind the cache; it queues the pool again.
		return ctrl.Result{}, nil
	}

	again, err := r.reconcile(ctx, pool, &v)
	if err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, EventReconcileFailed, "Reconcile", "%s", err)
	}
	return ctrl.Result{RequeueAfter: again}, client.IgnoreNotFound(err)
}

// reconcile carries a pool on as far as it can, and returns after how long to
// come back if nothing else happens.
func (r *poolReconciler) reconcile(ctx context.Context, pool *tidekeeperv1.NodePool, v *view) (again time.Duration, err error) {
	deleting := !pool.DeletionTimestamp.IsZero()
	if !controllerutil.ContainsFinalizer(pool, tidekeeperv1.NodePoolFinalizer) {
		if deleting {
			return 0, nil
		}
		// Nothing is put on a node before; the pool comes back with it.
		return 0, r.patch(ctx, pool, func() { controllerutil.AddFinalizer(pool, tidekeeperv1.NodePoolFinalizer) })
	}

	held, verify, err := r.stillHeld(ctx, pool, v)
	if err != nil {
		return 0, err
	}
	if deleting && v.carriers == 0 && !v.writing && !verify {
		return 0, r.patch(ctx, pool, func() { controllerutil.RemoveFinalizer(pool, tidekeeperv1.NodePoolFinalizer) })
	}
	if verify {
		again = verifyDelay
	}

	foreign := ""
	if !deleting {
		if foreign, err = r.reconcileRuntimeClass(ctx, pool); err != nil {
			return 0, err
		}
		wait, err := r.admit(ctx, pool)
		if err != nil {
			return 0, err
		}
		again = sooner(again, wait)
	}

	wait, err := r.writeStatus(ctx, pool, v, foreign, held)
	if err != nil {
		return 0, err
	}
	again = sooner(again, wait)

	told, wait := r.fleet.takeNews(pool.Name, r.clock.Now())
	for _, a := range told {
		r.recorder.Eventf(pool, nil, a.eventType, a.reason, a.action, "%s", a.note)
	}
	return sooner(again, wait), nil
}

// stillHeld returns which slots that the pool vouches for may still be on some
// node. Before the pool ceases to vouch for one, or lets go of its finalizer,
// it asks the API server itself once: what a stale cache does not show would
// stay on a node for ever. If the API server knows more than the model, verify
// says so.
func (r *poolReconciler) stillHeld(ctx context.Context, pool *tidekeeperv1.NodePool, v *view) (held func(slot) bool, verify bool, err error) {
	wanted := sets.New[slot]()
	for s := range wants(pool) {
		wanted.Insert(s)
	}
	lets := !pool.DeletionTimestamp.IsZero() && v.carriers == 0
	for s := range vouchedFor(pool) {
		lets = lets || !wanted.Has(s) && !v.held.Has(s)
	}
	switch {
	case !lets:
		return v.held.Has, false, nil
	case v.writing:
		// What is being written to a node may be just that. The pool is
		// queued when the write is over.
		return func(slot) bool { return true }, false, nil
	}

	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.live.List(ctx, nodes); err != nil {
		return nil, false, fmt.Errorf("list nodes to see that none carries anything of the pool: %w", err)
	}
	live := sets.New[slot]()
	for _, node := range nodes.Items {
		// What cannot be read tells nothing, here as in the plan.
		onNode, _ := parseRecord(node.Annotations[tidekeeperv1.RecordAnnotation])
		for s := range onNode[pool.Name] {
			live.Insert(s)
			verify = verify || !v.held.Has(s)
		}
	}
	return func(s slot) bool { return v.held.Has(s) || live.Has(s) }, verify, nil
}

// reconcileRuntimeClass does what has to be done about the pool's RuntimeClass,
// and returns why it cannot, if it belongs to somebody else.
func (r *poolReconciler) reconcileRuntimeClass(ctx context.Context, pool *tidekeeperv1.NodePool) (foreign string, err error) {
	existing := &nodev1.RuntimeClass{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: runtimeClassName(pool.Name)}, existing); err != nil {
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("get RuntimeClass: %w", err)
		}
		existing = nil
	}
	desired := desiredRuntimeClass(pool)
	reason, action := "", ""
	switch decideRuntimeClass(pool, existing) {
	case runtimeClassForeign:
		return fmt.Sprintf("RuntimeClass %s exists and does not belong to this pool: delete it, or take handler out of the spec", existing.Name), nil
	case runtimeClassCreate:
		reason, action = EventRuntimeClassCreated, "Create"
		err = r.client.Create(ctx, desired)
	case runtimeClassUpdate:
		reason, action = EventRuntimeClassUpdated, "Update"
		before := existing.DeepCopy()
		existing.Scheduling = desired.Scheduling
		err = r.client.Patch(ctx, existing, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	case runtimeClassReplace:
		reason, action = EventRuntimeClassReplaced, "Replace"
		if err = r.client.Delete(ctx, existing, exactly(existing)); client.IgnoreNotFound(err) == nil {
			err = r.client.Create(ctx, desired)
		}
	case runtimeClassDelete:
		reason, action = EventRuntimeClassDeleted, "Delete"
		err = client.IgnoreNotFound(r.client.Delete(ctx, existing, exactly(existing)))
	default:
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s RuntimeClass %s: %w", action, runtimeClassName(pool.Name), err)
	}
	r.recorder.Eventf(pool, nil, corev1.EventTypeNormal, reason, action, "RuntimeClass %s, handler %s",
		runtimeClassName(pool.Name), cmp.Or(pool.Spec.Handler, "none any more"))
	return "", nil
}

// exactly lets a deletion meet this very object, and not one of the same name
// that came after it.
func exactly(o client.Object) client.Preconditions {
	uid := o.GetUID()
	return client.Preconditions{UID: &uid}
}

// admit lets the pool's NoExecute taints reach the next share of its nodes.
func (r *poolReconciler) admit(ctx context.Context, pool *tidekeeperv1.NodePool) (again time.Duration, err error) {
	nodes, look := r.fleet.evictees(pool.Name)
	taints := evicting(pool)
	for i := range nodes {
		if !look.Has(nodes[i].node) {
			continue
		}
		pods := &corev1.PodList{}
		if err := r.client.List(ctx, pods, client.MatchingFields{index.PodNodeName: nodes[i].node}); err != nil {
			return 0, fmt.Errorf("list the pods of node %s: %w", nodes[i].node, err)
		}
		for j := range pods.Items {
			if isVictim(&pods.Items[j], taints) {
				nodes[i].victims++
			}
		}
	}
	next, again := nextEvictions(nodes, r.options.NoExecuteShare, r.options.NoExecuteInterval, r.clock.Now())
	if len(next) > 0 {
		r.feed.push(r.fleet.admit(pool.Name, next))
		r.recorder.Eventf(pool, nil, corev1.EventTypeNormal, EventNodesEvicting, "Taint",
			"NoExecute taint goes onto %s", these(next))
	}
	return again, nil
}

// writeStatus writes the status if it differs and its time has come.
func (r *poolReconciler) writeStatus(ctx context.Context, pool *tidekeeperv1.NodePool, v *view, foreign string, held func(slot) bool) (again time.Duration, err error) {
	now := r.clock.Now()
	status := newStatus(pool, v, foreign, managedKeys(pool, held), now)
	write, again := whenToWrite(&pool.Status, &status, r.written[pool.Name], now, r.options.StatusInterval)
	if !write {
		return again, nil
	}
	before := pool.DeepCopy()
	pool.Status = status
	// Under the resourceVersion: a manager with a stale cache must not take
	// back what the pool vouches for.
	if err := r.client.Status().Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("write status: %w", err)
	}
	r.written[pool.Name] = now
	r.metrics.statusWrites.WithLabelValues(pool.Name).Inc()
	r.tellTrouble(pool, before.Status.Conditions)
	return 0, nil
}

// tellTrouble tells, as an event, of what a person has to mend and was not in
// the conditions before.
func (r *poolReconciler) tellTrouble(pool *tidekeeperv1.NodePool, before []metav1.Condition) {
	began := func(conditionType, reason string) (message string, ok bool) {
		was, is := meta.FindStatusCondition(before, conditionType), meta.FindStatusCondition(pool.Status.Conditions, conditionType)
		if is == nil || is.Reason != reason || was != nil && was.Reason == reason {
			return "", false
		}
		return is.Message, true
	}
	if message, ok := began(ConditionConflicted, ReasonKeyTaken); ok {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, EventConflict, "Update", "%s", message)
	}
	if message, ok := began(ConditionReady, ReasonRuntimeClassConflict); ok {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, EventRuntimeClassConflict, "Create", "%s", message)
	}
}

// patch writes a change of the pool's metadata, valid only for the pool as it
// was read.
func (r *poolReconciler) patch(ctx context.Context, pool *tidekeeperv1.NodePool, change func()) error {
	before := pool.DeepCopy()
	change()
	return r.client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// sooner returns the shorter of two waits, of which 0 means none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
