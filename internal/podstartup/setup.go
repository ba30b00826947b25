// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// SetupWithManager adds the controller "pod-startup" to the manager. It has no
// queue, as there is nothing to try again: it counts as it sees. The manager's
// cache must have the informers of Pods, with the condition [SummaryCondition],
// Nodes and NodePools.
func SetupWithManager(mgr ctrl.Manager) error {
	m, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("pod start-up: register metrics: %w", err)
	}
	log := mgr.GetLogger().WithValues("controller", "pod-startup")
	o := newObserver(m, func(name string) string {
		node, pools := &corev1.Node{}, &tidekeeperv1.NodePoolList{}
		if err := mgr.GetCache().Get(context.Background(), client.ObjectKey{Name: name}, node); client.IgnoreNotFound(err) != nil {
			log.Error(err, "Cannot tell the pool of a node", "node", name)
		}
		if err := mgr.GetCache().List(context.Background(), pools, client.UnsafeDisableDeepCopy); err != nil {
			log.Error(err, "Cannot tell the pool of a node", "node", name)
		}
		return poolOf(node, pools.Items)
	})
	if err := follow(mgr, &corev1.Pod{}, toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(pod any, first bool) { o.add(pod.(*corev1.Pod), first) },
		UpdateFunc: func(old, pod any) {
			// After a gap in the watch it may be another pod of that name.
			if old.(*corev1.Pod).UID != pod.(*corev1.Pod).UID {
				o.remove(old.(*corev1.Pod))
				o.add(pod.(*corev1.Pod), false)
				return
			}
			o.change(pod.(*corev1.Pod))
		},
		DeleteFunc: func(pod any) { o.remove(lastSeen(pod).(*corev1.Pod)) },
	}); err != nil {
		return err
	}
	if err := follow(mgr, &tidekeeperv1.NodePool{}, toolscache.ResourceEventHandlerDetailedFuncs{
		DeleteFunc: func(pool any) { m.forget(lastSeen(pool).(*tidekeeperv1.NodePool).Name) },
	}); err != nil {
		return err
	}
	// The manager runs it when it leads, with the cache full.
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		o.lead(time.Now())
		<-ctx.Done()
		return nil
	})); err != nil {
		return fmt.Errorf("pod start-up: %w", err)
	}
	return nil
}

func follow(mgr ctrl.Manager, kind client.Object, handler toolscache.ResourceEventHandler) error {
	informer, err := mgr.GetCache().GetInformer(context.Background(), kind, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("pod start-up: get the informer of %T: %w", kind, err)
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("pod start-up: follow %T: %w", kind, err)
	}
	return nil
}

// lastSeen returns the object of a deletion. After a gap in the watch all that
// is known is the last state seen.
func lastSeen(o any) any {
	if gap, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		return gap.Obj
	}
	return o
}
