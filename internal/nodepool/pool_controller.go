// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
)

// verifyDelay is the delay before the next reconcile when the API server has nodes with a pool's
// settings that the cache does not show yet.
const verifyDelay = time.Second

// poolReconciler reconciles a pool's finalizer, RuntimeClass, evictions, status and events.
type poolReconciler struct {
	client client.Client
	// apiReader reads from the API server, bypassing the cache.
	apiReader client.Reader
	freezes   *freeze.Reader
	recorder  events.EventRecorder
	cluster   *state.Cluster
	feed      *eventFeed
	headroom  *headroomWorker
	drainable *drainableWorker
	metrics   *metrics
	clock     clock.PassiveClock
	options   Options
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *poolReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.cluster.StartRecording()
	pool := &tidekeeperv1.NodePool{}
	if err := r.client.Get(ctx, request.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			r.metrics.forget(request.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	v, known := r.cluster.Pool(pool.Name)
	if !known || v.Pool.UID != pool.UID || v.Pool.Generation != pool.Generation {
		// The model lags behind the cache. The pool is queued again once the model has caught up.
		return ctrl.Result{}, nil
	}

	again, err := r.reconcile(ctx, pool, &v)
	// Errors about a pool that has been deleted need no event.
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, tidekeeperv1.EventReconcileFailed, "Reconcile", "%s", err)
	}
	if err := client.IgnoreNotFound(err); err != nil {
		// The rate limiter determines the delay of the retry: controller-runtime ignores a
		// RequeueAfter that is returned with an error, and logs a warning.
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// reconcile updates the pool's finalizer, RuntimeClass, evictions, status and events. If `again` is
// not 0, the pool must be reconciled again after that time, even without an event.
func (r *poolReconciler) reconcile(ctx context.Context, pool *tidekeeperv1.NodePool, v *state.PoolSnapshot) (again time.Duration, err error) {
	deleting := !pool.DeletionTimestamp.IsZero()
	if !controllerutil.ContainsFinalizer(pool, tidekeeperv1.NodePoolFinalizer) {
		if deleting {
			return 0, nil
		}
		// Settings may be applied to nodes only after the finalizer has been added to the pool.
		if err := r.patch(ctx, pool, "Added the finalizer", func() { controllerutil.AddFinalizer(pool, tidekeeperv1.NodePoolFinalizer) }); err != nil {
			return 0, err
		}
	}

	if v.Planning {
		// Nothing is known of most nodes yet. They need not wait for that with their writes, but for
		// the pool to manage its keys. The pool is queued again when all nodes are planned.
		return 0, r.manageMore(ctx, pool)
	}

	held, verify, err := r.stillHeld(ctx, pool, v)
	if err != nil {
		return 0, err
	}
	if deleting && v.OwnedNodes == 0 && !v.Writing && !verify {
		return 0, r.patch(ctx, pool, "Removed the finalizer: no node has settings of the pool", func() { controllerutil.RemoveFinalizer(pool, tidekeeperv1.NodePoolFinalizer) })
	}
	if verify {
		again = verifyDelay
	}

	notOwned := ""
	if !deleting {
		if notOwned, err = r.reconcileRuntimeClass(ctx, pool); err != nil {
			return 0, err
		}
		wait, err := r.allowEvictions(ctx, pool, v)
		if err != nil {
			return 0, err
		}
		again = earliest(again, wait)
	}

	// Events are recorded even if the status write fails.
	wait, err := r.writeStatus(ctx, pool, v, notOwned, held)
	again = earliest(again, wait)

	pending, wait := r.cluster.Journal.Take(pool.Name, r.clock.Now())
	for _, e := range pending {
		r.recorder.Eventf(pool, nodeOf(e), e.Type, e.Reason, e.Action, "%s", e.Note)
	}
	return earliest(again, wait), err
}

// nodeOf returns the node of an event about a single node, or nil for an event about several nodes.
func nodeOf(e state.Event) runtime.Object {
	if e.Node == "" {
		return nil
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: e.Node}}
}

// stillHeld returns a function that reports whether a managed key may still be set on any node. If
// the pool is about to stop managing a key or to lose its finalizer, stillHeld lists the nodes from
// the API server. If it relied on a stale cache, a setting might stay on its node forever. `verify`
// is true if the API server shows settings of the pool that the model does not contain.
func (r *poolReconciler) stillHeld(ctx context.Context, pool *tidekeeperv1.NodePool, v *state.PoolSnapshot) (held func(setting.Key) bool, verify bool, err error) {
	wanted := plan.WantedKeys(pool)
	deleting := !pool.DeletionTimestamp.IsZero()
	releases := deleting && v.OwnedNodes == 0
	for s := range setting.Managed(pool) {
		releases = releases || !wanted.Has(s) && !v.OwnedKeys.Has(s)
	}
	switch {
	case !releases:
		return v.OwnedKeys.Has, false, nil
	case v.Writing:
		// A node's write in progress may set the key that is about to be released. The pool is
		// queued again after that write.
		return func(setting.Key) bool { return true }, false, nil
	}

	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.apiReader.List(ctx, nodes); err != nil {
		return nil, false, fmt.Errorf("list nodes to make sure that none has settings of the pool: %w", err)
	}
	live := sets.New[setting.Key]()
	for _, node := range nodes.Items {
		// An annotation that cannot be parsed may have named the pool. The node controller will
		// replace it, so that the next check can parse it.
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

// reconcileRuntimeClass creates, updates or deletes the pool's RuntimeClass. If a RuntimeClass with
// the pool's name exists but belongs to another owner, notOwned is the message to report in the
// status.
func (r *poolReconciler) reconcileRuntimeClass(ctx context.Context, pool *tidekeeperv1.NodePool) (notOwned string, err error) {
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
		return fmt.Sprintf("RuntimeClass %s exists and does not belong to this pool: delete it, or remove handler from the spec", existing.Name), nil
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
		// The cache does not contain the existing RuntimeClass yet, so its owner is unknown. A
		// conflict causes a retry.
		err = apierrors.NewConflict(nodev1.Resource("runtimeclasses"), plan.RuntimeClassName(pool.Name), err)
	}
	if err != nil {
		return "", fmt.Errorf("%s RuntimeClass %s: %w", strings.ToLower(action), plan.RuntimeClassName(pool.Name), err)
	}
	ctrl.LoggerFrom(ctx).Info("Wrote the RuntimeClass of a pool", "RuntimeClass", klog.KRef("", plan.RuntimeClassName(pool.Name)), "action", action, "handler", pool.Spec.Handler)
	if desired == nil {
		r.recorder.Eventf(pool, nil, corev1.EventTypeNormal, reason, action, "deleted RuntimeClass %s", existing.Name)
		return "", nil
	}
	r.recorder.Eventf(pool, nil, corev1.EventTypeNormal, reason, action, "RuntimeClass %s, handler %s", desired.Name, desired.Handler)
	return "", nil
}

// exactly limits a deletion to the UID of the given object, so that a newer object with the same
// name is not deleted.
func exactly(o client.Object) client.Preconditions {
	uid := o.GetUID()
	return client.Preconditions{UID: &uid}
}

// allowEvictions permits the pool to add its NoExecute taints to the next nodes, as many as the
// options allow at the same time. While a Freeze is in force, it permits none, and stores a
// description of the Freeze in v.HeldBackBy. If `again` is not 0, the pool must be reconciled again
// after that time.
func (r *poolReconciler) allowEvictions(ctx context.Context, pool *tidekeeperv1.NodePool, v *state.PoolSnapshot) (again time.Duration, err error) {
	now := r.clock.Now()
	pace := plan.Pace{Share: r.options.NoExecuteShare, MinDuration: r.options.NoExecuteInterval, MaxDuration: max(plan.MaxEvictionDuration, r.options.NoExecuteInterval)}
	nodes, members, total := r.cluster.Evictions(pool.Name, pace.MaxDuration, now)
	next, again := plan.NextEvictions(nodes, members, total, pace, now)
	if v.EvictionPending > 0 || v.Emptying > 0 || len(next) > 0 {
		live := r.freezes.LiveAnywhere
		if len(next) == 0 {
			live = nil
		}
		held, again, err := heldBack(ctx, r.freezes, live, now)
		switch {
		case err != nil:
			return 0, err
		case held != nil:
			v.HeldBackBy = held.String()
			return again, nil
		}
	}
	if len(next) == 0 {
		return again, nil
	}
	emptied := sets.New[string]()
	for _, n := range nodes {
		if n.AffectedPods == 0 {
			emptied.Insert(n.Node)
		}
	}
	r.feed.push(r.cluster.AllowEvictions(pool.Name, next, emptied, now))
	closed := []string{}
	if plan.EvictsWithinBudgets(pool) {
		closed = slices.DeleteFunc(slices.Clone(next), emptied.Has)
		next = slices.DeleteFunc(next, func(node string) bool { return !emptied.Has(node) })
	}
	if len(next) > 0 {
		r.recorder.Eventf(pool, nil, corev1.EventTypeNormal, tidekeeperv1.EventEvictingPods, "Taint",
			"adding a NoExecute taint to %s", state.FormatNodes(next))
	}
	if len(closed) > 0 {
		r.recorder.Eventf(pool, nil, corev1.EventTypeNormal, tidekeeperv1.EventEvictingPods, "Evict",
			"emptying %s within budgets, to add a NoExecute taint", state.FormatNodes(closed))
	}
	return again, nil
}

// writeStatus writes the status if it has changed and if the minimum interval since the last write
// has passed. If the interval has not passed, `again` is the remaining time, and otherwise 0.
func (r *poolReconciler) writeStatus(ctx context.Context, pool *tidekeeperv1.NodePool, v *state.PoolSnapshot, notOwned string, held func(setting.Key) bool) (again time.Duration, err error) {
	now := r.clock.Now()
	status := newStatus(pool, v, notOwned, asked{
		tidekeeperv1.ConditionHeadroom: r.headroom.condition(pool), tidekeeperv1.ConditionDrainable: r.drainable.condition(pool),
	}, plan.ManagedKeys(pool, held), now)
	write, again := whenToWrite(&pool.Status, &status, v.StatusWritten, now, r.options.StatusInterval)
	if !write {
		return again, nil
	}
	before := pool.DeepCopy()
	if before.Status.ObservedGeneration == 0 {
		// The stored status does not contain any numbers yet. Comparing with -1 makes the patch
		// include zero values.
		before.Status.NodeCount, before.Status.ReadyNodes, before.Status.UsableNodes = -1, -1, -1
	}
	pool.Status = status
	// The patch includes the resourceVersion, so that a manager with a stale cache cannot remove
	// managed keys.
	err = r.client.Status().Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && managesMore(&before.Status, &status) {
		// A setting is written to nodes only once its key is among the managed keys in the status.
		// These keys are therefore written even if the rest of the status is rejected.
		err = errors.Join(err, r.writeManaged(ctx, before, &status.Managed))
	}
	if err != nil {
		return 0, fmt.Errorf("write status: %w", err)
	}
	r.feed.push(r.cluster.PoolWritten(pool, now))
	r.metrics.statusWrites.WithLabelValues(pool.Name).Inc()
	r.reportProblems(pool, before.Status.Conditions)
	return 0, nil
}

// manageMore adds the keys of the pool's spec to the managed keys in its status, and leaves the rest
// of the status as it is.
func (r *poolReconciler) manageMore(ctx context.Context, pool *tidekeeperv1.NodePool) error {
	status := pool.Status
	status.Managed = plan.ManagedKeys(pool, func(setting.Key) bool { return true })
	if !pool.DeletionTimestamp.IsZero() || !managesMore(&pool.Status, &status) {
		return nil
	}
	if err := r.writeManaged(ctx, pool, &status.Managed); err != nil {
		return fmt.Errorf("write the managed keys: %w", err)
	}
	r.feed.push(r.cluster.PoolWritten(pool, time.Time{}))
	r.metrics.statusWrites.WithLabelValues(pool.Name).Inc()
	return nil
}

// writeManaged writes the managed keys in the pool's status, and nothing else. The patch includes the
// resourceVersion.
func (r *poolReconciler) writeManaged(ctx context.Context, pool *tidekeeperv1.NodePool, managed *tidekeeperv1.ManagedKeys) error {
	before := pool.DeepCopy()
	pool.Status.Managed = *managed
	return r.client.Status().Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// reportProblems records an event for each new problem that requires a user's action. A problem is
// new if the conditions in `before` do not contain it.
func (r *poolReconciler) reportProblems(pool *tidekeeperv1.NodePool, before []metav1.Condition) {
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
	if message, ok := began(tidekeeperv1.ConditionHeadroom, tidekeeperv1.ReasonNoPlace); ok {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, tidekeeperv1.EventHeadroomLost, "Evaluate", "%s", message)
	}
	if message, ok := began(tidekeeperv1.ConditionReady, tidekeeperv1.ReasonNodePatchRefused); ok {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, tidekeeperv1.EventNodePatchRefused, "Update", "%s", message)
	}
	if message, ok := began(tidekeeperv1.ConditionReady, tidekeeperv1.ReasonRuntimeClassConflict); ok {
		r.recorder.Eventf(pool, nil, corev1.EventTypeWarning, tidekeeperv1.EventRuntimeClassConflict, "Create", "%s", message)
	}
}

// patch applies `change` to the pool's metadata and writes the result, provided that the
// resourceVersion has not changed. After the write it logs the message `done`.
func (r *poolReconciler) patch(ctx context.Context, pool *tidekeeperv1.NodePool, done string, change func()) error {
	before := pool.DeepCopy()
	change()
	if err := r.client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch finalizers: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info(done)
	r.feed.push(r.cluster.PoolWritten(pool, time.Time{}))
	return nil
}

// earliest returns the shorter of two delays, where 0 means that no delay is set.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
