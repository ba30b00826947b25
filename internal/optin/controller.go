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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// fieldOwner owns, in server-side apply, what the annotations name.
const fieldOwner = "tidekeeper-opt-in"

// reconciler carries out what [decide] says about one workload.
type reconciler struct {
	client client.Client
	// live reads past the cache.
	live     client.Reader
	recorder events.EventRecorder
	// refused says when to try again what the API server finds invalid. That is
	// the fault of the annotations, so it must not look like one of ours in the
	// metrics, as an error would.
	refused workqueue.TypedRateLimiter[request]
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request request) (ctrl.Result, error) {
	workload := request.kind.New()
	if err := r.client.Get(ctx, request.NamespacedName, workload); err != nil {
		// Without the workload there is nothing to do: what it owned is collected. Nor is
		// there without its kind.
		r.refused.Forget(request)
		if meta.IsNoMatchError(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	existing, err := r.existing(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}

	d := decide(request.kind, workload, existing...)
	if d.look {
		if stays, err := r.stays(ctx, request, workload); err != nil || !stays {
			return ctrl.Result{}, err
		}
	}
	err = r.carryOut(ctx, &d)
	if !apierrors.IsInvalid(err) {
		r.refused.Forget(request)
	}
	var refusal *apierrors.StatusError
	switch {
	case d.action == nothing:
	case d.action == complain:
		r.tell(workload, corev1.EventTypeWarning, d.reason, d.action, d.note)
	case err == nil:
		ctrl.LoggerFrom(ctx).V(1).Info("Following the annotations", "done", d.note)
		r.tell(workload, corev1.EventTypeNormal, d.reason, d.action, d.note)
	case apierrors.IsConflict(err):
		return ctrl.Result{}, err
	case apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Somebody else has deleted it, or the whole namespace.
	case apierrors.IsInvalid(err) && errors.As(err, &refusal) && d.action != remove:
		// An admission policy, which answers the same as the schema, may be
		// mended without a change of the annotations. A deletion says nothing
		// that could be wrong.
		r.tell(workload, corev1.EventTypeWarning, tidekeeperv1.EventInvalidOptIn, d.action, "nothing is changed: "+refusalText(refusal))
		return ctrl.Result{RequeueAfter: r.refused.When(request)}, nil
	default:
		err = fmt.Errorf("%s ScheduledRestart %s: %w", strings.ToLower(string(d.action)), d.name, err)
		if ctx.Err() == nil {
			r.tell(workload, corev1.EventTypeWarning, tidekeeperv1.EventScheduledRestartFailed, d.action, err.Error())
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}

// existing returns what has the names of the workload, nil where there is nothing.
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

// stays tells whether the workload is there and not being deleted, whatever the
// cache says. Else what is just being left behind on purpose would get its owner
// back, and be collected with it; and what was collected with its owner would be
// made again, and collected again, for as long as the cache is behind.
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

// carryOut does what was decided, to the ScheduledRestart that it was decided
// on and no other.
func (r *reconciler) carryOut(ctx context.Context, d *decision) error {
	switch d.action {
	case create, update:
		// By force: what the annotations name is theirs, whoever else sets it.
		return r.client.Apply(ctx, d.apply, client.FieldOwner(fieldOwner), client.ForceOwnership)
	case remove:
		return r.client.Delete(ctx, d.existing, client.Preconditions{UID: &d.existing.UID, ResourceVersion: &d.existing.ResourceVersion})
	default:
		return nil
	}
}

// tell sends an event about the workload.
func (r *reconciler) tell(workload client.Object, eventType, reason string, action action, note string) {
	r.recorder.Eventf(workload, nil, eventType, reason, string(action), "%s", note)
}

// refusalText says why the API server has refused an object. Its own words
// begin with the kind and the name, which the event says already.
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
