// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// carryOut carries out a decision: it writes the status, and then sends the tick (the scheduled
// time of the restart) to the target, or evicts pods. After a crash between these steps, the next
// leader continues from the status. carryOut returns whether the ScheduledRestart still needs its
// slot of the restart budget.
func (r *reconciler) carryOut(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, t *target, d *decision.Output) (slotUse, error) {
	before, written := restart, false
	if !d.Unchanged && !equality.Semantic.DeepEqual(&restart.Status, &d.Status) {
		before = restart.DeepCopy()
		restart.Status = d.Status
		err := r.writeStatus(ctx, restart, before, d)
		r.refusals.note(key, restart.UID, isContentRejected(err), r.clock.Now())
		if err != nil {
			return slotUnknown, fmt.Errorf("write the status: %w", err)
		}
		written = true
		r.claims.note(key, restart, d.BeforeClaim)
	}
	use := slotFree
	switch {
	case d.Status.Active != nil:
		use = slotHeld
	case d.Needs == decision.NeedSlot:
		use = slotWaited
	}
	ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady)
	r.metrics.schedules.set(key, ready.Reason)
	r.reporter.report(ctx, restart, before, d)
	if d.Outlived {
		r.enqueue(r.slots.budget.Outlive(key))
	}
	if !d.Started.IsZero() {
		r.memories.rememberSent(key, restart.UID, d.Started)
		r.metrics.lateness.Observe(max(0, r.clock.Since(d.Due).Seconds()))
	}
	if len(d.Evict) > 0 {
		return use, r.evictor.evict(ctx, key, restart, d.Evict, written)
	}
	if d.Send.IsZero() {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to send", "reason", ready.Reason, "message", ready.Message, "next", d.Wake)
		return use, nil
	}
	if !written {
		if err := r.sender.recheck(ctx, key, restart); err != nil {
			return use, err
		}
	}
	// Forget the early claim of the tick (see [claims]) before the tick is sent to the target. If
	// the attempt fails, only the annotation of the target shows whether the tick was sent.
	r.claims.forget(key)
	err := r.sender.send(ctx, t, d.Send, d.Status.Active.Trigger)
	if r.refusals.noteSend(key, restart, err); err != nil {
		return use, err
	}
	r.memories.rememberSent(key, restart.UID, d.Send)
	r.queries.Forget(key)
	r.metrics.lateness.Observe(max(0, r.clock.Since(d.Due).Seconds()))
	return use, nil
}

// writeStatus writes the status only if the resourceVersion is unchanged, so that of two leaders
// only the first starts a restart. If the API server rejects the content of the status, the write
// is repeated with only the latest history entry, since older entries were already reported as
// events. If that write is rejected too, it is repeated without the entry's message.
func (r *reconciler) writeStatus(ctx context.Context, restart, before *tidekeeperv1.ScheduledRestart, d *decision.Output) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	attempt := restart.DeepCopy()
	err := r.client.Status().Patch(ctx, attempt, patch)
	if isContentRejected(err) && len(d.Status.History) > 1 {
		attempt = restart.DeepCopy()
		attempt.Status.History = attempt.Status.History[:1]
		err = r.client.Status().Patch(ctx, attempt, patch)
	}
	if isContentRejected(err) && len(d.Status.History) > 0 && d.Status.History[0].Message != "" {
		attempt = restart.DeepCopy()
		attempt.Status.History = attempt.Status.History[:1]
		attempt.Status.History[0].Message = ""
		err = r.client.Status().Patch(ctx, attempt, patch)
	}
	if err == nil {
		attempt.DeepCopyInto(restart)
	}
	return err
}

// isContentRejected reports whether the API server rejected a write because of its content, so that
// a retry cannot succeed. The internal error for an object that is too large for etcd also counts.
func isContentRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "too large")
}
