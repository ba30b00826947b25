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

// Controller describes a controller of namespaced objects.
type Controller[R comparable] struct {
	// Options are controller-runtime's options.
	Options controller.TypedOptions[R]
	// NamespaceOf returns the namespace of a request.
	NamespaceOf func(R) string
	// ObjectOf returns an object with the kind, the namespace and the name of the object that a request
	// is about.
	ObjectOf func(R) client.Object
	// Deferred, if not nil, is called when a reconcile is deferred. It sends no requests, and
	// releases resources that namespaces share, which must not stay reserved during the wait.
	Deferred func(context.Context, R)
}

// OfRequest returns the namespace of a request of the common type.
func OfRequest(r reconcile.Request) string { return r.Namespace }

// Complete builds a controller whose workers and requests to the API server are shared fairly
// among namespaces. Controllers of namespaced objects must be built with it, and not with the
// builder itself.
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

// Reconciler calls another reconciler, and charges the namespace of each request.
type Reconciler[R comparable] struct {
	inner    reconcile.TypedReconciler[R]
	shares   *Shares
	cache    client.Reader
	recorder events.EventRecorder
	of       Controller[R]
}

// Reconcile implements [reconcile.TypedReconciler]. A namespace that has used up its requests
// waits in the queue, and not in a worker.
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

// tell records an event about a deferred object, unless a recent event about an object of the namespace
// says the same: an event for each object would itself be more requests than the namespace has.
func (r *Reconciler[R]) tell(ctx context.Context, namespace string, request R) {
	if r.shares.isTold(namespace) {
		return
	}
	o := r.of.ObjectOf(request)
	if err := r.cache.Get(ctx, client.ObjectKeyFromObject(o), o, client.UnsafeDisableDeepCopy); err != nil || !r.shares.tell(namespace) {
		return // An event about another object of the namespace already says so.
	}
	r.recorder.Eventf(o, nil, corev1.EventTypeWarning, tidekeeperv1.EventRequestsUsedUp, "Reconcile",
		"the objects of this namespace have used up their requests to the API server (%g per second, %d at once), and are served as the clock gives some back: fewer changes, or fewer objects that fail, help",
		r.shares.limits.PerSecond, r.shares.limits.Burst)
}
