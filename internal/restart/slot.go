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

// slotUse describes whether a ScheduledRestart needs a slot of the restart budget after a
// reconcile.
type slotUse int

const (
	// slotUnknown means that a restart may be in progress, because a write was rejected, its
	// response was lost, or the reconcile panicked.
	slotUnknown slotUse = iota
	// slotHeld means that a restart is in progress and holds its slot.
	slotHeld
	// slotWaited means that a restart waits for a slot and must keep its place in the queue.
	slotWaited
	// slotFree means that the ScheduledRestart needs no slot, so that its slot can be released.
	slotFree
)

// slotUseOf returns whether a ScheduledRestart needs a slot according to its status. It is used if
// no decision was carried out.
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

// slots assigns the slots of the restart budget to ScheduledRestarts.
type slots struct {
	budget    *budget.Budget
	apiReader client.Reader
	clock     clock.PassiveClock
	// age is the maximum time for which a restart holds its slot; 0 means until the restart ends.
	age     time.Duration
	enqueue func([]types.NamespacedName)
}

// of returns the budget limits that apply to a namespace, and whether its share is used up.
func (s *slots) of(namespace string) decision.Slots {
	return decision.Slots{Limit: s.budget.Limit(), Share: s.budget.Share(), ShareUsed: s.budget.ShareUsed(namespace)}
}

// hold gives a slot to the restart in progress, and returns the time at which the slot expires. It
// returns zero if the slot has expired, if slots never expire, or if no restart is in progress. The
// result depends only on the clock, and not on the success of writes or reads.
func (s *slots) hold(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (outlives time.Time) {
	if restart.Status.Active == nil {
		return time.Time{}
	}
	started := restart.Status.Active.StartedTime.Time
	if s.age == 0 {
		s.budget.Hold(key, started)
		return time.Time{}
	}
	// If the slot had already expired when this process became the leader, the restart must not
	// take it again, even briefly.
	if s.clock.Now().Before(started.Add(s.age)) {
		started = s.budget.Hold(key, started)
	}
	if outlives = started.Add(s.age); s.clock.Now().Before(outlives) {
		return outlives
	}
	s.enqueue(s.budget.Outlive(key))
	return time.Time{}
}

// askTimeout is the time limit for the read that determines whether a slot is still needed.
const askTimeout = 10 * time.Second

// settle releases the slot of a ScheduledRestart, unless a restart is in progress or waits for a
// slot. use describes whether the ScheduledRestart needs a slot; if this is unknown, settle asks
// the API server.
func (s *slots) settle(ctx context.Context, key types.NamespacedName, use slotUse) {
	if use == slotUnknown && s.budget.Outlived(key) {
		return
	}
	if use == slotUnknown && s.budget.Has(key) {
		// The slot use may be unknown because the context was cancelled, so the read needs a
		// context that is not cancelled with it.
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		active, err := s.isActive(ask, key)
		if err != nil {
			// Keep the slot, so that no other restart starts instead. The next reconcile repeats
			// the read.
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

// isActive reports whether a restart of the given ScheduledRestart is in progress, according to the
// API server.
func (s *slots) isActive(ctx context.Context, key types.NamespacedName) (bool, error) {
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := s.apiReader.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}); err != nil {
		return false, fmt.Errorf("read whether a restart is in progress: %w", err)
	}
	return len(list.Items) == 1 && list.Items[0].Status.Active != nil, nil
}
