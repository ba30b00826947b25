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
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart"
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
	workload := restart.NewWorkload(request.kind)
	if err := r.client.Get(ctx, request.NamespacedName, workload); err != nil {
		// Without the workload there is nothing to do: what it owned is collected.
		r.refused.Forget(request)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	existing := &tidekeeperv1.ScheduledRestart{}
	if err := r.client.Get(ctx, request.NamespacedName, existing); apierrors.IsNotFound(err) {
		existing = nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("get ScheduledRestart: %w", err)
	}

	d := decide(request.kind, workload, existing)
	if d.look {
		if stays, err := r.stays(ctx, request, workload); err != nil || !stays {
			return ctrl.Result{}, err
		}
	}
	err := r.carryOut(ctx, &d, existing)
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
		r.tell(workload, corev1.EventTypeWarning, EventInvalidOptIn, d.action, "nothing is changed: "+refusalText(refusal))
		return ctrl.Result{RequeueAfter: r.refused.When(request)}, nil
	default:
		err = fmt.Errorf("%s ScheduledRestart %s: %w", strings.ToLower(string(d.action)), request.Name, err)
		if ctx.Err() == nil {
			r.tell(workload, corev1.EventTypeWarning, EventFailed, d.action, err.Error())
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}

// stays tells whether the workload is there and not being deleted, whatever the
// cache says. Else what is just being left behind on purpose would get its owner
// back, and be collected with it; and what was collected with its owner would be
// made again, and collected again, for as long as the cache is behind.
func (r *reconciler) stays(ctx context.Context, request request, workload client.Object) (bool, error) {
	live := restart.NewWorkload(request.kind)
	if err := r.live.Get(ctx, request.NamespacedName, live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.GetUID() == workload.GetUID() && live.GetDeletionTimestamp().IsZero(), nil
}

// carryOut does what was decided, to the ScheduledRestart that it was decided
// on and no other.
func (r *reconciler) carryOut(ctx context.Context, d *decision, existing *tidekeeperv1.ScheduledRestart) error {
	switch d.action {
	case create, update:
		// By force: what the annotations name is theirs, whoever else sets it.
		return r.client.Apply(ctx, d.apply, client.FieldOwner(fieldOwner), client.ForceOwnership)
	case remove:
		return r.client.Delete(ctx, existing, client.Preconditions{UID: &existing.UID, ResourceVersion: &existing.ResourceVersion})
	default:
		return nil
	}
}

// noteLimit is how many bytes the API server takes in an event.
const noteLimit = 1024

// tell sends an event about the workload.
func (r *reconciler) tell(workload client.Object, eventType, reason string, action action, note string) {
	if len(note) > noteLimit {
		note = strings.ToValidUTF8(note[:noteLimit], "")
	}
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
