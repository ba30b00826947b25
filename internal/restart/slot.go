// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// slotUse describes, after a reconcile, whether a ScheduledRestart needs its slot.
type slotUse int

const (
	// slotUnknown means that a restart may be in progress: a write was refused, its response was lost, or the
	// reconcile panicked.
	slotUnknown slotUse = iota
	// slotHeld means that a restart is in progress.
	slotHeld
	// slotWaited means that a restart waits for a slot.
	slotWaited
	// slotFree means that no slot is needed.
	slotFree
)

// slotUseOf returns the slotUse of a ScheduledRestart for which the reconcile decided and wrote nothing.
func slotUseOf(restart *tidekeeperv1.ScheduledRestart) slotUse {
	if restart.Status.Active != nil {
		return slotHeld
	}
	return slotFree
}

// waitsForSlot reports whether a ScheduledRestart waits for a slot according to its status.
func waitsForSlot(restart *tidekeeperv1.ScheduledRestart) bool {
	ready := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionReady)
	return restart.Status.Active == nil && restart.DeletionTimestamp.IsZero() && ready != nil && ready.Reason == tidekeeperv1.ReasonBudgetExhausted
}

// slots manages the slots of the budget for the reconciler.
type slots struct {
	budget    *budget.Budget
	apiReader client.Reader
	clock     clock.PassiveClock
	// age is the maximum time for which a restart uses its slot; 0 means until it ends.
	age     time.Duration
	enqueue func([]types.NamespacedName)
}

// of returns the limits that keep the waiting restarts of a namespace from getting a slot.
func (s *slots) of(namespace string) decision.Slots {
	return decision.Slots{Limit: s.budget.Limit(), Share: s.budget.Share(), ShareUsed: s.budget.ShareUsed(namespace)}
}

// hold gives a slot to the restart in progress, and returns the time at which the slot expires; zero if it
// has expired or no restart is in progress. The result depends on the clock only, and not on whether writes
// or reads of the target succeed.
func (s *slots) hold(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (outlives time.Time) {
	if restart.Status.Active == nil {
		return time.Time{}
	}
	started := restart.Status.Active.StartedTime.Time
	if s.age == 0 {
		s.budget.Hold(key, started)
		return time.Time{}
	}
	// A new leader must not hold an expired slot, even briefly, for a restart that it finds in the status.
	if s.clock.Now().Before(started.Add(s.age)) {
		started = s.budget.Hold(key, started)
	}
	if outlives = started.Add(s.age); s.clock.Now().Before(outlives) {
		return outlives
	}
	s.enqueue(s.budget.Outlive(key))
	return time.Time{}
}

// askTimeout is the time limit for the read that finds out whether a slot is still in use.
const askTimeout = 10 * time.Second

// settle releases the slot of a ScheduledRestart unless a restart is in progress or waits for the slot.
func (s *slots) settle(ctx context.Context, key types.NamespacedName, use slotUse) {
	if use == slotUnknown && s.budget.Outlived(key) {
		return
	}
	if use == slotUnknown && s.budget.Has(key) {
		// The context may have been cancelled, which would explain the unknown state.
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		active, err := s.isActive(ask, key)
		if err != nil {
			// Keep the slot: no other restart starts instead, and the read is retried.
			ctrl.LoggerFrom(ctx).V(1).Info("Kept a slot, as it is unknown whether the restart is in progress", "error", err.Error())
			return
		}
		if active {
			use = slotHeld
		}
	}
	if use == slotFree || use == slotUnknown {
		s.enqueue(s.budget.Release(key))
	}
}

// isActive reports whether a restart is in progress, according to the API server.
func (s *slots) isActive(ctx context.Context, key types.NamespacedName) (bool, error) {
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := s.apiReader.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}); err != nil {
		return false, fmt.Errorf("read whether a restart is in progress: %w", err)
	}
	return len(list.Items) == 1 && list.Items[0].Status.Active != nil, nil
}
