// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
)

// reconciler maintains the status of Freezes. Freezes take effect independently of their status,
// because the other controllers read the spec.
type reconciler struct {
	client   client.Client
	cache    client.Reader
	recorder events.EventRecorder
	wakeups  *wakeup.Wakeups[reconcile.Request]
	metrics  *metrics
	clock    clock.PassiveClock
	// countsRestarts is true if the manager watches ScheduledRestarts. countsNodes is true if it
	// watches NodePools.
	countsRestarts, countsNodes bool

	mu sync.Mutex
	// known maps the name of each Freeze to its last seen version.
	known map[string]lastSeen
}

type lastSeen struct {
	freeze *tidekeeperv1.Freeze
	// written is the time at which this process last wrote the status of the Freeze.
	written time.Time
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &tidekeeperv1.Freeze{}
	if err := r.client.Get(ctx, request.NamespacedName, f); err != nil {
		if apierrors.IsNotFound(err) {
			r.deleted(request)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now := r.clock.Now()
	p := period.Of(f)
	var held tidekeeperv1.HeldBack
	if p.Contains(now) {
		var err error
		if held, err = r.heldBack(ctx, f); err != nil {
			return ctrl.Result{}, err
		}
	}
	status := newStatus(f, held, now)
	seen := r.see(f)
	at := whenToWrite(&f.Status, &status, seen.written, now)
	if !at.IsZero() && !at.After(now) {
		before := f.DeepCopy()
		f.Status = status
		if err := r.client.Status().Patch(ctx, f, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			if apierrors.IsNotFound(err) {
				// The Freeze was deleted, but is still in the cache.
				r.deleted(request)
				return ctrl.Result{}, nil
			}
			return ctrl.Result{}, fmt.Errorf("write the status: %w", err)
		}
		r.wrote(f, now)
		r.report(before, f)
		at = time.Time{}
	}
	phase, _ := phaseOf(p, now)
	r.metrics.set(f.Name, phase)
	if next := nextChange(p, now); at.IsZero() || !next.IsZero() && next.Before(at) {
		at = next
	}
	r.wakeups.Set(request, at)
	return ctrl.Result{}, nil
}

// see stores a Freeze as its last seen version, and returns the previously seen version.
func (r *reconciler) see(f *tidekeeperv1.Freeze) lastSeen {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.known[f.Name]
	if seen.freeze != nil && seen.freeze.UID != f.UID {
		seen.written = time.Time{}
	}
	r.known[f.Name] = lastSeen{f.DeepCopy(), seen.written}
	return seen
}

func (r *reconciler) wrote(f *tidekeeperv1.Freeze, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[f.Name] = lastSeen{f.DeepCopy(), now}
}

// deleted drops the state of a deleted Freeze, and records an event if the Freeze was still in
// force.
func (r *reconciler) deleted(request ctrl.Request) {
	r.mu.Lock()
	seen, known := r.known[request.Name]
	delete(r.known, request.Name)
	r.mu.Unlock()
	r.wakeups.Set(request, time.Time{})
	r.metrics.set(request.Name, "")
	if known && isInForce(&seen.freeze.Status) && period.Of(seen.freeze).Contains(r.clock.Now()) {
		r.recorder.Eventf(seen.freeze, nil, corev1.EventTypeNormal, tidekeeperv1.EventFreezeEnded, "Freeze", "deleted before its end; %s", heldBackText(&seen.freeze.Status.HeldBack))
	}
}

// report records an event if the status change means that the freeze has begun or ended.
func (r *reconciler) report(before, after *tidekeeperv1.Freeze) {
	was, is := isInForce(&before.Status), isInForce(&after.Status)
	switch {
	case !was && is:
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, tidekeeperv1.EventFreezeBegan, "Freeze", "in force until %s: %s",
			after.Spec.Until.UTC().Format(time.RFC3339), after.Spec.Reason)
	case was && !is:
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, tidekeeperv1.EventFreezeEnded, "Freeze", "ended; %s", heldBackText(&after.Status.HeldBack))
	}
}

// heldBackText formats the counts of restarts, missed ticks (scheduled times) and nodes that a
// freeze has held back, for the message of an event.
func heldBackText(held *tidekeeperv1.HeldBack) string {
	return fmt.Sprintf("restarts that waited and now start as the budget allows: %d; ticks missed: %d; nodes that waited for a NoExecute taint: %d",
		held.Restarts, held.MissedTicks, held.Nodes)
}
