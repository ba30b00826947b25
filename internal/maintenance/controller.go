// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
)

// reconciler carries out the decisions that [decision.Decide] makes about NodeMaintenances.
type reconciler struct {
	client    client.Client
	apiReader client.Reader
	recorder  events.EventRecorder
	clock     clock.PassiveClock
	wakeups   *wakeup.Wakeups[reconcile.Request]
	freezes   *freeze.Reader
	drains    *drains
	restarts  *restarts
	places    *places
	metrics   *metrics
	// move queues a node for the controller "node-drain", which then checks the pods on the node.
	move func(node string)
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m := &tidekeeperv1.NodeMaintenance{}
	if err := r.client.Get(ctx, request.NamespacedName, m); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !m.DeletionTimestamp.IsZero() {
		r.drains.forget(m.Name)
		return ctrl.Result{}, r.cleanUp(ctx, m)
	}
	if !controllerutil.ContainsFinalizer(m, tidekeeperv1.NodeMaintenanceFinalizer) {
		before := m.DeepCopy()
		controllerutil.AddFinalizer(m, tidekeeperv1.NodeMaintenanceFinalizer)
		if err := r.client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	in, err := r.gather(ctx, m)
	if err != nil {
		return ctrl.Result{}, err
	}
	out, err := r.decide(ctx, &in)
	if err != nil {
		return ctrl.Result{}, err
	}
	// The status is written before any node is patched: otherwise, a drain would be forgotten if
	// the manager crashed before it recorded the drain.
	if err := r.writeStatus(ctx, m, &out.Status); err != nil {
		return ctrl.Result{}, err
	}
	r.report(m, out.Events)
	r.metrics.set(m.Name, &m.Status)
	changed := r.drains.watch(m.Name, &m.Status, out.Watched, out.Draining)
	cordoned, err := r.act(ctx, m, out.Actions)
	// The nodes are queued after they were cordoned, because pods are moved only from cordoned nodes.
	for _, node := range append(changed, cordoned...) {
		r.move(node)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.restarts.sweep(ctx, m); err != nil {
		return ctrl.Result{}, err
	}
	if o := m.Spec.Nodes.Outdated; o != nil && o.MinAgeSeconds > 0 {
		// A node can become outdated by its age without an event, so the next decision is due
		// within a minute.
		if at := r.clock.Now().Add(time.Minute); out.Wake.IsZero() || at.Before(out.Wake) {
			out.Wake = at
		}
	}
	r.wakeups.Set(request, out.Wake)
	return ctrl.Result{}, nil
}

// forget drops everything that this process has stored about a deleted NodeMaintenance.
func (r *reconciler) forget(request ctrl.Request) {
	r.wakeups.Set(request, time.Time{})
	r.drains.forget(request.Name)
	r.metrics.set(request.Name, nil)
}

// writeStatus writes the status if it has changed. If the NodeMaintenance has changed since it was
// read, it returns a conflict.
func (r *reconciler) writeStatus(ctx context.Context, m *tidekeeperv1.NodeMaintenance, status *tidekeeperv1.NodeMaintenanceStatus) error {
	if equality.Semantic.DeepEqual(&m.Status, status) {
		return nil
	}
	before := m.DeepCopy()
	m.Status = *status
	if err := r.client.Status().Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// report records events about the NodeMaintenance and its nodes.
func (r *reconciler) report(m *tidekeeperv1.NodeMaintenance, list []decision.Event) {
	for _, e := range list {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: e.Node}}
		if p, known := m.Status.Nodes[e.Node]; known {
			node.UID = p.UID
			r.metrics.phase(&p)
		}
		r.recorder.Eventf(m, node, kind, e.Reason, "Maintain", "%s: %s", e.Node, e.Message)
		r.recorder.Eventf(node, m, kind, e.Reason, "Maintain", "NodeMaintenance %s: %s", m.Name, e.Message)
	}
}
