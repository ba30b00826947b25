// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionresponder

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/evictionresponder/decision"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

// sweep deletes the ScheduledRestarts of this controller in a namespace that no Eviction needs any
// more. This withdraws restarts that have not begun. A ScheduledRestart whose restart is in
// progress is kept until the restart has ended.
func (r *reconciler) sweep(ctx context.Context, namespace string) error {
	idle := func(restart *tidekeeperv1.ScheduledRestart) bool { return restart.Status.Active == nil }
	found := false
	if err := r.requests.Delete(ctx, func(restart *tidekeeperv1.ScheduledRestart) bool {
		found = found || idle(restart)
		return false
	}, client.InNamespace(namespace)); err != nil || !found {
		return err
	}
	needed, err := r.needed(ctx, namespace)
	if err != nil {
		return err
	}
	return r.requests.Delete(ctx, func(restart *tidekeeperv1.ScheduledRestart) bool {
		return idle(restart) && !needed.Has(restart.Spec.TargetRef.Name)
	}, client.InNamespace(namespace))
}

// needed returns the names of the Deployments in a namespace that have a pod with an Eviction to
// which this controller still has to respond.
func (r *reconciler) needed(ctx context.Context, namespace string) (sets.Set[string], error) {
	evictions, err := evictionsIn(ctx, r.client, namespace)
	if err != nil {
		return nil, err
	}
	names := sets.New[string]()
	for i := range evictions {
		if decision.Entry(&evictions[i]) == nil {
			continue
		}
		pod, err := r.cachedTarget(ctx, &evictions[i])
		if err != nil {
			return nil, err
		}
		if pod == nil {
			continue
		}
		if key, is := rescue.DeploymentOf(pod); is {
			names.Insert(key.Name)
		}
	}
	return names, nil
}
