// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// slotUse is what a reconcile has found out about the slot of a ScheduledRestart.
type slotUse int

const (
	// slotUnknown means that it is not known whether a restart is in progress: a write
	// was refused or its response lost, or the reconcile panicked.
	slotUnknown slotUse = iota
	// slotHeld means that a restart is in progress.
	slotHeld
	// slotWaited means that a restart waits for a slot.
	slotWaited
	// slotFree means that no slot is needed.
	slotFree
)

// slotUseOf returns the use of the slot of a ScheduledRestart about which nothing was decided or
// written.
func slotUseOf(restart *tidekeeperv1.ScheduledRestart) slotUse {
	if restart.Status.Active != nil {
		return slotHeld
	}
	return slotFree
}

// holdSlot has a restart in progress hold its slot, and returns when it outlives it; zero if it
// has, or if none is in progress. That depends on the clock only: neither on what can be written
// nor on what can be read of the target.
func (r *reconciler) holdSlot(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (outlives time.Time) {
	if restart.Status.Active == nil {
		return time.Time{}
	}
	started := restart.Status.Active.StartedTime.Time
	if r.slotAge == 0 {
		r.budget.Hold(key, started)
		return time.Time{}
	}
	// Of one that a new leader finds in the status, it is not even used for a moment.
	if r.clock.Now().Before(started.Add(r.slotAge)) {
		started = r.budget.Hold(key, started)
	}
	if outlives = started.Add(r.slotAge); r.clock.Now().Before(outlives) {
		return outlives
	}
	r.enqueue(r.budget.Outlive(key))
	return time.Time{}
}

// deferred gives back the slot of a restart that has used it for long enough, or that no longer
// exists, while the reconciles of its namespace are put off. It sends no requests.
func (r *reconciler) deferred(ctx context.Context, request reconcile.Request) {
	key, restart := request.NamespacedName, &tidekeeperv1.ScheduledRestart{}
	switch err := r.cache.Get(ctx, key, restart, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err) || err == nil && !restart.DeletionTimestamp.IsZero():
		r.forget(key)
	case err == nil && !r.leader().IsZero():
		if outlives := r.holdSlot(key, restart); !outlives.IsZero() {
			r.wakeups.Set(request, outlives)
		}
	}
}

// askTimeout bounds how long it may take to find out whether a slot is still in use.
const askTimeout = 10 * time.Second

// settleSlot ensures that only restarts in progress hold slots.
func (r *reconciler) settleSlot(ctx context.Context, key types.NamespacedName, use slotUse) {
	if use == slotUnknown && r.budget.Outlived(key) {
		return
	}
	if use == slotUnknown && r.budget.Has(key) {
		// The end of the context may be the reason why it is unknown.
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		active, err := r.isActive(ask, key)
		if err != nil {
			// No other restart can start either. It is tried again.
			ctrl.LoggerFrom(ctx).V(1).Info("Kept a slot, as it is unknown whether the restart is in progress", "error", err.Error())
			return
		}
		if active {
			use = slotHeld
		}
	}
	if use == slotFree || use == slotUnknown {
		r.enqueue(r.budget.Release(key))
	}
}

// isActive reports whether a restart is in progress, according to the API server.
func (r *reconciler) isActive(ctx context.Context, key types.NamespacedName) (bool, error) {
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := r.apiReader.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}); err != nil {
		return false, fmt.Errorf("read whether a restart is in progress: %w", err)
	}
	return len(list.Items) == 1 && list.Items[0].Status.Active != nil, nil
}

// lead fills the budget, once, with the restarts in progress: otherwise a new leader
// could start more beside them.
func (r *reconciler) lead(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leadingSince.IsZero() {
		return nil
	}
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the restarts in progress: %w", err)
	}
	for i := range list.Items {
		r.holdSlot(client.ObjectKeyFromObject(&list.Items[i]), &list.Items[i])
	}
	r.leadingSince = r.clock.Now().Round(0)
	return nil
}

// leader returns since when this process decides.
func (r *reconciler) leader() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leadingSince
}
