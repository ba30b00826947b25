// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/kube/retry"
)

// concurrency is the maximum number of ReplicaSets that are reconciled at the same time.
const concurrency = 8

// SetupWithManager adds the controller "pod-count" to the manager. The manager's cache must have
// informers for ReplicaSets and Pods, and the index [index.PodController].
func SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("pod-count").
		For(&appsv1.ReplicaSet{}, builder.WithPredicates(replicaSetChanges)).
		Watches(&corev1.Pod{}, podEvents)
	if err := fairness.Complete(mgr, b, fairness.Controller[reconcile.Request]{
		Options:     controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: retry.Limiter[reconcile.Request]()},
		NamespaceOf: fairness.OfRequest,
		ObjectOf: func(r reconcile.Request) client.Object {
			return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		},
	}, retry.Conflicts(&reconciler{client: mgr.GetClient()})); err != nil {
		return fmt.Errorf("pod count: %w", err)
	}
	return nil
}

// reconciler keeps the label pod-count of ReplicaSets up to date.
type reconciler struct {
	client client.Client
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	rs := &appsv1.ReplicaSet{}
	if err := r.client.Get(ctx, request.NamespacedName, rs); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	list := &corev1.PodList{}
	if err := r.client.List(ctx, list, client.InNamespace(rs.Namespace),
		client.MatchingFields{index.PodController: string(rs.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list pods: %w", err)
	}

	n := count(rs, list.Items)
	body, err := patch(rs, n)
	if err != nil || body == nil {
		return ctrl.Result{}, err
	}
	was := rs.Labels[Label]
	// If the patch is rejected, return an error, so that it is retried. An admission policy may be
	// fixed without a change of the ReplicaSet or its pods.
	if err := r.client.Patch(ctx, rs, client.RawPatch(types.MergePatchType, body)); err != nil {
		return ctrl.Result{}, fmt.Errorf("patch ReplicaSet: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("Labelled the ReplicaSet", "pods", n, "previous", was)
	return ctrl.Result{}, nil
}

// debounce is the delay before a ReplicaSet with changed pods is counted. Pods that change in the
// meantime are counted at the same time, so that scaling a ReplicaSet by a hundred pods does not
// cause a hundred writes.
const debounce = 100 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// podEvents enqueues the ReplicaSets whose number of pods may have changed.
var podEvents = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(q, countedBy(e.Object)) },
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(q, countedBy(e.Object)) },
	UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		// Most changes of a pod do not change the number of pods. Enqueue ReplicaSets only if the
		// pod counts for another ReplicaSet than before, starts to count, or no longer counts.
		if was, is := countedBy(e.ObjectOld), countedBy(e.ObjectNew); was != is {
			enqueue(q, was)
			enqueue(q, is)
		}
	},
}

// replicaSet identifies the ReplicaSet for which a pod counts. The zero value means that the pod
// counts for no ReplicaSet.
type replicaSet struct {
	types.NamespacedName
	uid types.UID
}

// countedBy returns the ReplicaSet for which a pod counts; the zero value if it counts for no
// ReplicaSet.
func countedBy(o any) replicaSet {
	pod, ok := o.(*corev1.Pod)
	if !ok || !pods.IsActive(pod) {
		return replicaSet{}
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return replicaSet{}
	}
	return replicaSet{types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, owner.UID}
}

func enqueue(q queue, rs replicaSet) {
	if rs != (replicaSet{}) {
		q.AddAfter(ctrl.Request{NamespacedName: rs.NamespacedName}, debounce)
	}
}

// replicaSetChanges accepts new ReplicaSets and changes of the label pod-count. Other changes of a
// ReplicaSet do not require a new count.
var replicaSetChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, had := e.ObjectOld.GetLabels()[Label]
		is, has := e.ObjectNew.GetLabels()[Label]
		return had != has || was != is || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}
