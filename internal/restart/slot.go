// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// slotUse is the use of the slot of a ScheduledRestart, according to a reconcile.
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

// slots are the slots of the budget.
type slots struct {
	budget    *budget.Budget
	apiReader client.Reader
	clock     clock.PassiveClock
	// age is how long a restart uses its slot, 0 until it ends.
	age     time.Duration
	enqueue func([]types.NamespacedName)
}

// of returns which slots are used up for the restarts of a namespace that wait.
func (s *slots) of(namespace string) decision.Slots {
	return decision.Slots{Limit: s.budget.Limit(), Share: s.budget.Share(), ShareUsed: s.budget.ShareUsed(namespace)}
}

// hold has a restart in progress hold its slot, and returns when it outlives it; zero if it
// has, or if none is in progress. That depends on the clock only: neither on writes that succeed
// nor on reads of the target.
func (s *slots) hold(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (outlives time.Time) {
	if restart.Status.Active == nil {
		return time.Time{}
	}
	started := restart.Status.Active.StartedTime.Time
	if s.age == 0 {
		s.budget.Hold(key, started)
		return time.Time{}
	}
	// The slot of a restart that a new leader finds in the status is not even used for a moment.
	if s.clock.Now().Before(started.Add(s.age)) {
		started = s.budget.Hold(key, started)
	}
	if outlives = started.Add(s.age); s.clock.Now().Before(outlives) {
		return outlives
	}
	s.enqueue(s.budget.Outlive(key))
	return time.Time{}
}

// askTimeout bounds how long it may take to find out whether a slot is still in use.
const askTimeout = 10 * time.Second

// settle ensures that only restarts in progress hold slots.
func (s *slots) settle(ctx context.Context, key types.NamespacedName, use slotUse) {
	if use == slotUnknown && s.budget.Outlived(key) {
		return
	}
	if use == slotUnknown && s.budget.Has(key) {
		// The end of the context may be the reason why it is unknown.
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		active, err := s.isActive(ask, key)
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
