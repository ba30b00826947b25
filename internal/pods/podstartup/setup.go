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
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/informers"
	"tidekeeper.dev/tidekeeper/internal/kube/leadership"
)

// SetupWithManager adds the controller "pod-startup" to the manager. The controller has no queue,
// because it retries nothing: it counts pods in the event handler. The manager's cache must have
// informers for Nodes, for NodePools, and for Pods with the condition
// [podtimeline.SummaryCondition].
func SetupWithManager(mgr ctrl.Manager) error {
	m, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("pod start-up: register metrics: %w", err)
	}
	p := &pools{}
	log := mgr.GetLogger().WithValues("controller", "pod-startup")
	o := newObserver(m, func(name string) string {
		node := &corev1.Node{}
		if err := mgr.GetCache().Get(context.Background(), client.ObjectKey{Name: name}, node); client.IgnoreNotFound(err) != nil {
			log.Error(err, "Cannot read a node to find its pool", "node", name)
		}
		return p.poolOf(node)
	})
	ctx := context.Background()
	followed, err := informers.Follow(ctx, mgr.GetCache(), informers.Handler[*tidekeeperv1.NodePool]{
		Add:    func(pool *tidekeeperv1.NodePool, _ bool) { p.set(pool) },
		Update: func(_, pool *tidekeeperv1.NodePool) { p.set(pool) },
		Delete: func(pool *tidekeeperv1.NodePool, _ bool) {
			p.remove(pool.Name)
			m.forget(pool.Name)
		},
	})
	if err != nil {
		return fmt.Errorf("pod start-up: %w", err)
	}
	if _, err := informers.Follow(ctx, mgr.GetCache(), o.handler()); err != nil {
		return fmt.Errorf("pod start-up: %w", err)
	}
	if err := leadership.OnElected(mgr, func(ctx context.Context) {
		if toolscache.WaitForCacheSync(ctx.Done(), followed.HasSynced) {
			o.lead(time.Now())
		}
	}); err != nil {
		return fmt.Errorf("pod start-up: %w", err)
	}
	return nil
}

// handler returns the event handler that passes added, changed and deleted pods to the observer.
func (o *observer) handler() informers.Handler[*corev1.Pod] {
	return informers.Handler[*corev1.Pod]{
		Add: o.add,
		Update: func(old, pod *corev1.Pod) {
			if old.UID != pod.UID {
				o.remove(old)
				o.add(pod, false)
				return
			}
			o.update(pod)
		},
		Delete: func(pod *corev1.Pod, _ bool) { o.remove(pod) },
	}
}
