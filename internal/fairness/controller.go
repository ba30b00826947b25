// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Controller configures a controller of namespaced objects for [Complete].
type Controller[R comparable] struct {
	// Options are passed to controller-runtime.
	Options controller.TypedOptions[R]
	// NamespaceOf returns the namespace of a reconcile request.
	NamespaceOf func(R) string
	// ObjectOf returns an empty object with the kind, namespace and name of the object to be
	// reconciled for a request.
	ObjectOf func(R) client.Object
	// Deferred, if not nil, is called when a reconcile is deferred. It must release resources that
	// namespaces share, so that they are not reserved during the wait, and must not send API
	// requests.
	Deferred func(context.Context, R)
}

// OfRequest returns the namespace of a [reconcile.Request]. Most controllers use it as
// [Controller.NamespaceOf].
func OfRequest(r reconcile.Request) string { return r.Namespace }

// Complete builds a controller that shares its workers and API requests fairly among namespaces.
// Controllers of namespaced objects must be built with this function instead of the builder's own
// method Complete.
func Complete[R comparable](mgr ctrl.Manager, b *builder.TypedBuilder[R], c Controller[R], inner reconcile.TypedReconciler[R]) error {
	shared, ok := mgr.(interface{ Shares() *Shares })
	if !ok {
		return errors.New("the manager has no shares of namespaces")
	}
	if c.NamespaceOf == nil || c.ObjectOf == nil {
		return errors.New("a controller of namespaced objects says which namespace and which object a request is about")
	}
	workers := max(1, c.Options.MaxConcurrentReconciles)
	c.Options.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
		return newQueue(name, workers, limiter, c.NamespaceOf)
	}
	return b.WithOptions(c.Options).Complete(&Reconciler[R]{
		inner: inner, shares: shared.Shares(), cache: mgr.GetCache(), recorder: mgr.GetEventRecorder("tidekeeper"), of: c,
	})
}

// Reconciler calls an inner reconciler, and charges its API requests and running time to the
// namespace of the reconciled object.
type Reconciler[R comparable] struct {
	inner    reconcile.TypedReconciler[R]
	shares   *Shares
	cache    client.Reader
	recorder events.EventRecorder
	of       Controller[R]
}

// Reconcile implements [reconcile.TypedReconciler]. If the namespace has exhausted its API request
// limit, the reconcile request is queued again without occupying a worker.
func (r *Reconciler[R]) Reconcile(ctx context.Context, request R) (ctrl.Result, error) {
	namespace := r.of.NamespaceOf(request)
	if wait := r.shares.wait(namespace); wait > 0 {
		ctrl.LoggerFrom(ctx).V(1).Info("Deferred, because the namespace has used up its requests to the API server", "for", wait.Round(time.Millisecond).String())
		if r.of.Deferred != nil {
			r.of.Deferred(ctx, request)
		}
		r.tell(ctx, namespace, request)
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	begun := r.shares.clock.Now()
	defer func() { r.shares.work(namespace, r.shares.clock.Since(begun)) }()
	return r.inner.Reconcile(With(ctx, namespace), request)
}

// tell records an event about a deferred object, unless an event was recently recorded in the same
// namespace. An event per object would itself exceed the namespace's API request limit.
func (r *Reconciler[R]) tell(ctx context.Context, namespace string, request R) {
	if r.shares.isTold(namespace) {
		return
	}
	o := r.of.ObjectOf(request)
	if err := r.cache.Get(ctx, client.ObjectKeyFromObject(o), o, client.UnsafeDisableDeepCopy); err != nil || !r.shares.tell(namespace) {
		return // Another worker has just recorded the event, or the object was deleted.
	}
	r.recorder.Eventf(o, nil, corev1.EventTypeWarning, tidekeeperv1.EventRequestsUsedUp, "Reconcile",
		"the objects of this namespace have used up their requests to the API server (%g per second, %d at once), and are served as the clock gives some back: fewer changes, or fewer objects that fail, help",
		r.shares.limits.PerSecond, r.shares.limits.Burst)
}
