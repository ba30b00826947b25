// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Controller describes a controller of namespaced objects.
type Controller[R comparable] struct {
	// Options are controller-runtime's options.
	Options controller.TypedOptions[R]
	// NamespaceOf returns the namespace of a request.
	NamespaceOf func(R) string
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
	workers := max(1, c.Options.MaxConcurrentReconciles)
	c.Options.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
		return newQueue(name, workers, limiter, c.NamespaceOf)
	}
	return b.WithOptions(c.Options).Complete(&Reconciler[R]{inner: inner, shares: shared.Shares(), namespaceOf: c.NamespaceOf, deferred: c.Deferred})
}

// Reconciler calls another reconciler, and charges the namespace of each request.
type Reconciler[R comparable] struct {
	inner       reconcile.TypedReconciler[R]
	shares      *Shares
	namespaceOf func(R) string
	deferred    func(context.Context, R)
}

// Reconcile implements [reconcile.TypedReconciler]. A namespace that has used up its requests
// waits in the queue, and not in a worker.
func (r *Reconciler[R]) Reconcile(ctx context.Context, request R) (ctrl.Result, error) {
	namespace := r.namespaceOf(request)
	if wait := r.shares.wait(namespace); wait > 0 {
		ctrl.LoggerFrom(ctx).V(1).Info("Deferred, because the namespace has used up its requests to the API server", "for", wait.Round(time.Millisecond).String())
		if r.deferred != nil {
			r.deferred(ctx, request)
		}
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	begun := r.shares.clock.Now()
	defer func() { r.shares.work(namespace, r.shares.clock.Since(begun)) }()
	return r.inner.Reconcile(With(ctx, namespace), request)
}
