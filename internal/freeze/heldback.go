// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/index"
)

// heldBack counts the restarts and nodes that a freeze in force holds back. It uses an index to
// list only ScheduledRestarts that any freeze holds back or has held back.
func (r *reconciler) heldBack(ctx context.Context, f *tidekeeperv1.Freeze) (tidekeeperv1.HeldBack, error) {
	var held tidekeeperv1.HeldBack
	if r.countsRestarts {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := r.cache.List(ctx, list, client.MatchingFields{index.RestartHeldBack: index.IsHeldBack}, client.UnsafeDisableDeepCopy); err != nil {
			return held, fmt.Errorf("list the restarts that are held back: %w", err)
		}
		selected := map[string]bool{}
		for i := range list.Items {
			restart := &list.Items[i]
			is, known := selected[restart.Namespace]
			if !known {
				var err error
				if is, err = r.selects(ctx, f, restart.Namespace); err != nil {
					return held, err
				}
				selected[restart.Namespace] = is
			}
			if is {
				addHeldBack(&held, restart, period.Of(f))
			}
		}
	}
	if r.countsNodes {
		pools := &tidekeeperv1.NodePoolList{}
		if err := r.cache.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
			return held, fmt.Errorf("list node pools: %w", err)
		}
		for i := range pools.Items {
			held.Nodes += pools.Items[i].Status.HeldBackNodes
		}
	}
	return held, nil
}

// selects reports whether a freeze applies to the given namespace.
func (r *reconciler) selects(ctx context.Context, f *tidekeeperv1.Freeze, namespace string) (bool, error) {
	labels := map[string]string{corev1.LabelMetadataName: namespace}
	object := &corev1.Namespace{}
	err := r.cache.Get(ctx, client.ObjectKey{Name: namespace}, object)
	if err == nil {
		labels = object.Labels
	} else if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get the labels of the namespace %s: %w", namespace, err)
	}
	return period.Selects(f, labels), nil
}

// addHeldBack adds to held the due restart and the missed ticks (scheduled times) of a
// ScheduledRestart that the freeze with the period p held back.
func addHeldBack(held *tidekeeperv1.HeldBack, restart *tidekeeperv1.ScheduledRestart, p period.Period) {
	if index.ReadyReason(restart) == tidekeeperv1.ReasonFrozen {
		held.Restarts++
	}
	for i := range restart.Status.History {
		if record := &restart.Status.History[i]; record.Reason == tidekeeperv1.ReasonFrozen && !record.CompletedTime.Time.Before(p.From) {
			held.MissedTicks += 1 + record.EarlierTicks
		}
	}
}
