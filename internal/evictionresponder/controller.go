// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionresponder

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"tidekeeper.dev/tidekeeper/internal/evictionresponder/decision"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
	"tidekeeper.dev/tidekeeper/internal/rescue/requests"
)

// reconciler carries out the decisions that [decision.Decide] makes about Evictions.
type reconciler struct {
	client    client.Client
	apiReader client.Reader
	clock     clock.PassiveClock
	wakeups   *wakeup.Wakeups[reconcile.Request]
	requests  *requests.Requests
	metrics   *metrics
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	e := &lifecyclev1alpha1.Eviction{}
	err := r.client.Get(ctx, request.NamespacedName, e)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return ctrl.Result{}, err
	}
	if err != nil || decision.Entry(e) == nil {
		r.wakeups.Set(request, time.Time{})
		return ctrl.Result{}, r.sweep(ctx, request.Namespace)
	}
	in, err := r.gather(ctx, e)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := decision.Decide(in.Input)
	if err := r.act(ctx, &in, &step); err != nil {
		return ctrl.Result{}, err
	}
	r.wakeups.Set(request, step.Wake)
	if step.Outcome != "" {
		return ctrl.Result{}, r.sweep(ctx, request.Namespace)
	}
	return ctrl.Result{}, nil
}

// act writes the responder's status in the Eviction, and then requests the restart. If the process
// crashes between these two steps, the next decision requests the restart.
func (r *reconciler) act(ctx context.Context, in *facts, step *decision.Step) error {
	if step.Status == nil {
		return nil
	}
	if err := r.write(ctx, in.Eviction, step.Status); err != nil {
		return fmt.Errorf("write the status of Eviction %s: %w", in.Eviction.Name, err)
	}
	log := ctrl.LoggerFrom(ctx).WithValues("pod", klog.KRef(in.Eviction.Namespace, in.Eviction.Spec.Target.Pod.Name))
	if step.Outcome != "" {
		r.metrics.responses.WithLabelValues(string(step.Outcome)).Inc()
		log.Info("Completed the response to an Eviction", "outcome", string(step.Outcome), "message", *step.Status.Message)
	}
	if !step.Restart {
		return nil
	}
	if err := r.requests.Request(ctx, in.Deployment, in.known, "true", step.Status.StartTime.Time); err != nil {
		return err
	}
	log.Info("Requested a restart that moves the pod of an Eviction", "Deployment", klog.KObj(in.Deployment))
	return nil
}

// write writes the responder's entry in the status of an Eviction. If the Eviction has changed
// since it was read, write returns a conflict. The patch changes no entry of another responder.
func (r *reconciler) write(ctx context.Context, e *lifecyclev1alpha1.Eviction, entry *lifecyclev1alpha1.ResponderStatus) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": e.UID, "resourceVersion": e.ResourceVersion},
		"status":   map[string]any{"responders": []*lifecyclev1alpha1.ResponderStatus{entry}},
	})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	return r.client.Status().Patch(ctx, e.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, body))
}
