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

// fieldOwner is the field manager that owns, in server-side apply, the fields set by
// annotations.
const fieldOwner = "tidekeeper-opt-in"

// reconciler carries out the decision of [decide] for a workload.
type reconciler struct {
	client client.Client
	// live reads from the API server instead of the cache.
	live     client.Reader
	recorder events.EventRecorder
	// refused decides when to retry a write that the API server refuses as invalid. The
	// annotations cause the refusal, so it must not count as an error of the controller in the
	// metrics.
	refused workqueue.TypedRateLimiter[request]
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request request) (ctrl.Result, error) {
	workload := request.kind.New()
	if err := r.client.Get(ctx, request.NamespacedName, workload); err != nil {
		// Without the workload there is nothing to do: the garbage collector deletes its
		// ScheduledRestart. The same is true if the kind does not exist.
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
		// Another client deleted the ScheduledRestart or the whole namespace.
	case apierrors.IsInvalid(err) && errors.As(err, &refusal) && d.action != remove:
		// A refusal by an admission policy looks the same as a refusal by the schema, and the
		// policy may be fixed without a change of the annotations. A deletion has no content
		// that could be invalid.
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

// logGone logs that nothing is done for a workload that is gone, whether the cache or, ahead of it, the API
// server says so.
func logGone(ctx context.Context) { ctrl.LoggerFrom(ctx).V(1).Info("There is no such workload") }

// existing returns the ScheduledRestarts with the names of [namesFor], and nil for a name that
// does not exist.
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

// stays reports whether the workload exists and is not being deleted, according to the API
// server. While the cache is behind, two mistakes would be possible without this check: a
// ScheduledRestart that a deletion orphans on purpose would get its owner reference back and be
// garbage-collected with the owner; and a ScheduledRestart that was garbage-collected with its
// owner would be created and collected repeatedly.
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

// carryOut carries out the decision, on exactly the ScheduledRestart that it was made for.
func (r *reconciler) carryOut(ctx context.Context, d *decision) error {
	switch d.action {
	case create, update:
		// Force, because fields set by annotations belong to the opt-in, even if another field
		// manager sets them.
		return r.client.Apply(ctx, d.apply, client.FieldOwner(fieldOwner), client.ForceOwnership)
	case remove:
		return r.client.Delete(ctx, d.existing, client.Preconditions{UID: &d.existing.UID, ResourceVersion: &d.existing.ResourceVersion})
	default:
		return nil
	}
}

// event records an event about the workload.
func (r *reconciler) event(workload client.Object, eventType, reason string, action action, note string) {
	r.recorder.Eventf(workload, nil, eventType, reason, string(action), "%s", note)
}

// refusalText returns the reasons for which the API server refused an object. The API server's
// own message begins with the kind and the name, which the event already contains.
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
