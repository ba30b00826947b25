// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// fieldOwner is the field manager for the server-side apply of the ScheduledRestart fields that the
// annotations define.
const fieldOwner = "tidekeeper-opt-in"

// reconciler creates, updates and deletes the ScheduledRestarts of workloads, as [decide] decides.
type reconciler struct {
	client client.Client
	// live reads from the API server, bypassing the cache.
	live     client.Reader
	recorder events.EventRecorder
	// refused provides the delay before retrying a write that the API server rejected as invalid.
	// Such a rejection is caused by the annotations, so it must not be counted as a controller
	// error in the metrics.
	refused workqueue.TypedRateLimiter[request]
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request request) (ctrl.Result, error) {
	workload := request.kind.New()
	if err := r.client.Get(ctx, request.NamespacedName, workload); err != nil {
		// If the workload or its kind no longer exists, the garbage collector deletes the
		// ScheduledRestart.
		r.refused.Forget(request)
		if err = client.IgnoreNotFound(err); err != nil && !meta.IsNoMatchError(err) {
			return ctrl.Result{}, err
		}
		logGone(ctx)
		return ctrl.Result{}, nil
	}
	existing, err := r.existing(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}

	d := decide(request.kind, workload, existing...)
	if d.look {
		switch stays, err := r.stays(ctx, request, workload); {
		case err != nil:
			return ctrl.Result{}, err
		case !stays:
			logGone(ctx)
			return ctrl.Result{}, nil
		}
	}
	err = r.carryOut(ctx, &d)
	if !apierrors.IsInvalid(err) {
		r.refused.Forget(request)
	}
	var refusal *apierrors.StatusError
	switch {
	case d.action == nothing:
		ctrl.LoggerFrom(ctx).V(1).Info("There is nothing to do for the annotations of a workload")
	case d.action == complain:
		r.event(workload, corev1.EventTypeWarning, d.reason, d.action, d.note)
	case err == nil:
		ctrl.LoggerFrom(ctx).Info("Followed the annotations of a workload", "ScheduledRestart", klog.KRef(request.Namespace, d.name), "change", d.note)
		r.event(workload, corev1.EventTypeNormal, d.reason, d.action, d.note)
		if note := setBack(&d); note != "" {
			r.recorder.Eventf(d.existing, workload, corev1.EventTypeWarning, tidekeeperv1.EventAnnotationWins, string(d.action), "%s", note)
		}
	case apierrors.IsConflict(err):
		return ctrl.Result{}, err
	case apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Do nothing, because another client has deleted the ScheduledRestart, or its namespace is
		// being deleted.
	case apierrors.IsInvalid(err) && errors.As(err, &refusal) && d.action != remove:
		// Invalid writes are retried even if the annotations do not change, because the rejection
		// may come from an admission policy, which may be fixed at any time and whose error looks
		// like a schema error. A deletion is excluded because it has no content that could be
		// invalid.
		r.event(workload, corev1.EventTypeWarning, tidekeeperv1.EventInvalidOptIn, d.action, "nothing is changed: "+refusalText(refusal))
		return ctrl.Result{RequeueAfter: r.refused.When(request)}, nil
	default:
		err = fmt.Errorf("%s ScheduledRestart %s: %w", strings.ToLower(string(d.action)), d.name, err)
		if ctx.Err() == nil {
			r.event(workload, corev1.EventTypeWarning, tidekeeperv1.EventScheduledRestartFailed, d.action, err.Error())
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}

// logGone logs that a workload no longer exists in the cache or on the API server.
func logGone(ctx context.Context) { ctrl.LoggerFrom(ctx).V(1).Info("There is no such workload") }

// existing returns the ScheduledRestarts that have the names returned by [namesFor], in the same
// order. The element is nil for a name that does not exist.
func (r *reconciler) existing(ctx context.Context, request request) ([]*tidekeeperv1.ScheduledRestart, error) {
	names := namesFor(request.kind, request.Name)
	existing := make([]*tidekeeperv1.ScheduledRestart, len(names))
	for i, name := range names {
		o := &tidekeeperv1.ScheduledRestart{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: name}, o)
		switch {
		case err == nil:
			existing[i] = o
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get ScheduledRestart %s: %w", name, err)
		}
	}
	return existing, nil
}

// stays reports whether, according to the API server, the workload exists and is not being deleted.
// Without this check, a stale cache could have two effects. A ScheduledRestart orphaned on purpose
// by its workload's deletion would be adopted again, and then be garbage-collected with its owner.
// A ScheduledRestart already garbage-collected with its owner would be created and collected again
// and again.
func (r *reconciler) stays(ctx context.Context, request request, workload client.Object) (bool, error) {
	live := request.kind.New()
	if err := r.live.Get(ctx, request.NamespacedName, live); err != nil {
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		return false, client.IgnoreNotFound(err)
	}
	return live.GetUID() == workload.GetUID() && live.GetDeletionTimestamp().IsZero(), nil
}

// carryOut carries out the decision, provided that the ScheduledRestart has not changed since the
// decision was made.
func (r *reconciler) carryOut(ctx context.Context, d *decision) error {
	switch d.action {
	case create, update:
		// Ownership is forced because the fields defined by annotations belong to the opt-in, even
		// if another field manager has set them.
		return r.client.Apply(ctx, d.apply, client.FieldOwner(fieldOwner), client.ForceOwnership)
	case remove:
		return r.client.Delete(ctx, d.existing, client.Preconditions{UID: &d.existing.UID, ResourceVersion: &d.existing.ResourceVersion})
	default:
		return nil
	}
}

// event records an event whose subject is the workload.
func (r *reconciler) event(workload client.Object, eventType, reason string, action action, note string) {
	r.recorder.Eventf(workload, nil, eventType, reason, string(action), "%s", note)
}

// refusalText returns the reasons why the API server rejected an object. It omits the object's kind
// and name, with which the message of err begins, because the event already contains them.
func refusalText(err *apierrors.StatusError) string {
	if err.ErrStatus.Details == nil || len(err.ErrStatus.Details.Causes) == 0 {
		return err.Error()
	}
	causes := make([]string, len(err.ErrStatus.Details.Causes))
	for i, cause := range err.ErrStatus.Details.Causes {
		causes[i] = strings.TrimPrefix(cause.Field+": "+cause.Message, ": ")
	}
	return strings.Join(causes, "; ")
}
