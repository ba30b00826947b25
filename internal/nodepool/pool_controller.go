// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
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
	cluster  *state.Cluster
	feed     *eventFeed
	metrics  *metrics
	clock    clock.PassiveClock
	options  Options

	// written is when the status of each pool was last written. Only one
	// worker runs, so it needs no lock.
	written map[string]time.Time
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *poolReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.cluster.StartRecording()
	pool := &tidekeeperv1.NodePool{}
	if err := r.client.Get(ctx, request.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			r.metrics.forget(request.Name)
			delete(r.written, request.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	v, known := r.cluster.Pool(pool.Name)
	if !known || v.Pool.UID != pool.UID || v.Pool.Generation != pool.Generation {
		// The model is a moment behind the cache; it queues the pool again.
		return ctrl.Result{}, nil
	}

	again, err := r.reconcile(ctx, pool, &v)
	// A pool that is gone needs no event.
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, tidekeeperv1.EventReconcileFailed, "Reconcile", "%s", err)
	}
	if err := client.IgnoreNotFound(err); err != nil {
		// The rate limiter decides when to retry: controller-runtime ignores a
		// RequeueAfter beside an error, and logs a warning.
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// reconcile carries a pool on as far as it can, and returns after how long to
// come back if nothing else happens.
func (r *poolReconciler) reconcile(ctx context.Context, pool *tidekeeperv1.NodePool, v *state.PoolSnapshot) (again time.Duration, err error) {
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
	if deleting && v.OwnedNodes == 0 && !v.Writing && !verify {
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
		again = earliest(again, r.admit(pool))
	}

	// What has happened is told also if the status cannot be written.
	wait, err := r.writeStatus(ctx, pool, v, foreign, held)
	again = earliest(again, wait)

	told, wait := r.cluster.TakeEvents(pool.Name, r.clock.Now())
	for _, a := range told {
		r.recorder.Eventf(pool, nodeOf(a), a.Type, a.Reason, a.Action, "%s", a.Note)
	}
	return earliest(again, wait), err
}

// nodeOf returns the node that an event is about, if it is about one only.
func nodeOf(a state.Event) runtime.Object {
	if a.Node == "" {
		return nil
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Node}}
}

// stillHeld returns which slots that the pool vouches for may still be on some
// node. Before the pool ceases to vouch for one, or lets go of its finalizer,
// it asks the API server itself once: what a stale cache does not show would
// stay on a node for ever. If the API server knows more than the model, verify
// says so.
func (r *poolReconciler) stillHeld(ctx context.Context, pool *tidekeeperv1.NodePool, v *state.PoolSnapshot) (held func(setting.Key) bool, verify bool, err error) {
	wanted := sets.New[setting.Key]()
	for s := range setting.Desired(pool) {
		wanted.Insert(s)
	}
	deleting := !pool.DeletionTimestamp.IsZero()
	lets := deleting && v.OwnedNodes == 0
	for s := range setting.Managed(pool) {
		lets = lets || !wanted.Has(s) && !v.OwnedKeys.Has(s)
	}
	switch {
	case !lets:
		return v.OwnedKeys.Has, false, nil
	case v.Writing:
		// What is being written to a node may be just that. The pool is
		// queued when the write is over.
		return func(setting.Key) bool { return true }, false, nil
	}

	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.live.List(ctx, nodes); err != nil {
		return nil, false, fmt.Errorf("list nodes to see that none carries anything of the pool: %w", err)
	}
	live := sets.New[setting.Key]()
	for _, node := range nodes.Items {
		// Of what cannot be read the plan makes what it can.
		onNode, unreadable := ownership.Parse(node.Annotations[tidekeeperv1.OwnershipAnnotation])
		if len(onNode[pool.Name]) == 0 && unreadable == nil || !r.cluster.WaitsFor(pool.Name, node.Name, unreadable != nil) {
			continue
		}
		verify = verify || unreadable != nil
		for s := range onNode[pool.Name] {
			live.Insert(s)
			verify = verify || deleting || !v.OwnedKeys.Has(s)
		}
	}
	return func(s setting.Key) bool { return v.OwnedKeys.Has(s) || live.Has(s) }, verify, nil
}

// reconcileRuntimeClass does what has to be done about the pool's RuntimeClass,
// and returns why it cannot, if it belongs to somebody else.
func (r *poolReconciler) reconcileRuntimeClass(ctx context.Context, pool *tidekeeperv1.NodePool) (foreign string, err error) {
	existing := &nodev1.RuntimeClass{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: plan.RuntimeClassName(pool.Name)}, existing); err != nil {
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("get RuntimeClass: %w", err)
		}
		existing = nil
	}
	desired := plan.DesiredRuntimeClass(pool)
	reason, action := "", ""
	switch plan.DecideRuntimeClass(pool, existing) {
	case plan.RuntimeClassNotOwned:
		return fmt.Sprintf("RuntimeClass %s exists and does not belong to this pool: delete it, or take handler out of the spec", existing.Name), nil
	case plan.RuntimeClassCreate:
		reason, action = tidekeeperv1.EventRuntimeClassCreated, "Create"
		err = r.client.Create(ctx, desired)
	case plan.RuntimeClassUpdate:
		reason, action = tidekeeperv1.EventRuntimeClassUpdated, "Update"
		before := existing.DeepCopy()
		existing.Scheduling = desired.Scheduling
		err = r.client.Patch(ctx, existing, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	case plan.RuntimeClassReplace:
		reason, action = tidekeeperv1.EventRuntimeClassReplaced, "Replace"
		if err = r.client.Delete(ctx, existing, exactly(existing)); client.IgnoreNotFound(err) == nil {
			err = r.client.Create(ctx, desired)
		}
	case plan.RuntimeClassDelete:
		reason, action = tidekeeperv1.EventRuntimeClassDeleted, "Delete"
		err = client.IgnoreNotFound(r.client.Delete(ctx, existing, exactly(existing)))
	default:
		return "", nil
	}
	if apierrors.IsAlreadyExists(err) {
		// What is there, and whose it is, is seen when the cache has it.
		err = apierrors.NewConflict(nodev1.Resource("runtimeclasses"), plan.RuntimeClassName(pool.Name), err)
	}
	if err != nil {
		return "", fmt.Errorf("%s RuntimeClass %s: %w", action, plan.RuntimeClassName(pool.Name), err)
	}
	r.recorder.Eventf(pool, nil, corev1.EventTypeNormal, reason, action, "RuntimeClass %s, handler %s",
		plan.RuntimeClassName(pool.Name), cmp.Or(pool.Spec.Handler, "none any more"))
	return "", nil
}

// exactly lets a deletion meet this very object, and not one of the same name
// that came after it.
func exactly(o client.Object) client.Preconditions {
	uid := o.GetUID()
	return client.Preconditions{UID: &uid}
}

// admit lets the pool's NoExecute taints reach the next share of its nodes.
func (r *poolReconciler) admit(pool *tidekeeperv1.NodePool) (again time.Duration) {
	now := r.clock.Now()
	pace := plan.Pace{Share: r.options.NoExecuteShare, MinDuration: r.options.NoExecuteInterval, MaxDuration: max(plan.MaxEvictionDuration, r.options.NoExecuteInterval)}
	nodes, members, total := r.cluster.Evictions(pool.Name, pace.MaxDuration, now)
	next, again := plan.NextEvictions(nodes, members, total, pace, now)
	if len(next) > 0 {
		r.feed.push(r.cluster.AllowEvictions(pool.Name, next))
		r.recorder.Eventf(pool, nil, corev1.EventTypeNormal, tidekeeperv1.EventEvictingPods, "Taint",
			"NoExecute taint goes onto %s", state.FormatNodes(next))
	}
	return again
}

// writeStatus writes the status if it differs and its time has come.
func (r *poolReconciler) writeStatus(ctx context.Context, pool *tidekeeperv1.NodePool, v *state.PoolSnapshot, foreign string, held func(setting.Key) bool) (again time.Duration, err error) {
	now := r.clock.Now()
	status := newStatus(pool, v, foreign, plan.ManagedKeys(pool, held), now)
	write, again := whenToWrite(&pool.Status, &status, r.written[pool.Name], now, r.options.StatusInterval)
	if !write {
		return again, nil
	}
	before := pool.DeepCopy()
	pool.Status = status
	// Under the resourceVersion: a manager with a stale cache must not take
	// back what the pool vouches for.
	err = r.client.Status().Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && managesMore(&before.Status, &status) {
		// Nodes wait for what the pool vouches for, and for nothing else of it.
		pool = before.DeepCopy()
		pool.Status.Managed = status.Managed
		if also := r.client.Status().Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); also != nil {
			err = errors.Join(err, also)
		}
	}
	if err != nil {
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
	if message, ok := began(tidekeeperv1.ConditionConflicted, tidekeeperv1.ReasonKeyConflict); ok {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, tidekeeperv1.EventKeyConflict, "Update", "%s", message)
	}
	if message, ok := began(tidekeeperv1.ConditionReady, tidekeeperv1.ReasonNodePatchRefused); ok {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, tidekeeperv1.EventNodePatchRefused, "Update", "%s", message)
	}
	if message, ok := began(tidekeeperv1.ConditionReady, tidekeeperv1.ReasonRuntimeClassConflict); ok {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, tidekeeperv1.EventRuntimeClassConflict, "Create", "%s", message)
	}
}

// patch writes a change of the pool's metadata, valid only for the pool as it
// was read.
func (r *poolReconciler) patch(ctx context.Context, pool *tidekeeperv1.NodePool, change func()) error {
	before := pool.DeepCopy()
	change()
	return r.client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// earliest returns the shorter of two waits, of which 0 means none.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
