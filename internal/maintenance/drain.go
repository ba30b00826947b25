// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/kube/eviction"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
	"tidekeeper.dev/tidekeeper/internal/maintenance/moves"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

const (
	// lookInterval is the interval at which the pods of a node are checked even without an event.
	lookInterval = 5 * time.Second
	// mostEvictions is the maximum number of evictions on a node per reconcile, and atOnce is the
	// maximum number of concurrent eviction requests for a node.
	mostEvictions = 40
	atOnce        = 8
	// mostRestarts is the maximum number of restarts that are requested for a node per reconcile.
	mostRestarts = 20
	// mostFirst is the maximum number of pods that are annotated per reconcile so that a restart
	// replaces them first.
	mostFirst = 40
	// firstTimeout is the time limit for annotating all of these pods, so that a webhook that does not
	// respond does not hold up the drain.
	firstTimeout = 5 * time.Second
	// mostRead is the number of Deployments that are read from the API server per reconcile.
	// mostConfirmed is the maximum number of further Deployments that are read before their pods are
	// moved.
	mostRead, mostConfirmed = 50, 100
	// podsPage is the page size for listing pods.
	podsPage = 500
)

// drainReconciler moves the pods of nodes that are being drained.
type drainReconciler struct {
	client    client.Client
	apiReader client.Reader
	drains    *drains
	restarts  *restarts
	freezes   *freeze.Reader
	metrics   *metrics
	clock     clock.PassiveClock
	// tell queues the NodeMaintenance with the given name for the controller "node-maintenance".
	tell func(maintenance string)
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *drainReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	of, watched := r.drains.look(request.Name)
	if !watched {
		return ctrl.Result{}, nil
	}
	m := &tidekeeperv1.NodeMaintenance{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: of.maintenance}, m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	l := &look{drainReconciler: r, node: request.Name, of: &of, confirmed: map[types.NamespacedName]bool{}}
	defer func() { r.drains.pace(request.Name, l.reads) }()
	in, err := l.gather(ctx, m)
	if err != nil {
		return ctrl.Result{}, err
	}
	out := moves.Decide(in)
	if of.moving && (len(out.Evict) > 0 || len(out.Restart) > 0) {
		allowed, err := r.allowed(ctx, m, request.Name, &of)
		if err != nil {
			return ctrl.Result{}, err
		}
		if allowed {
			if out, err = l.confirm(ctx, &in, out); err != nil {
				return ctrl.Result{}, err
			}
			if err := r.move(ctx, m, request.Name, &of, &in, &out); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	state := decision.Drain{UID: of.uid, Empty: out.Left == 0, Settled: out.Settled, Reason: out.Reason, Message: out.Message}
	if r.drains.set(request.Name, of, state) {
		r.tell(of.maintenance)
	}
	wait := lookInterval
	if !out.Wake.IsZero() {
		wait = min(wait, out.Wake.Sub(in.Now))
	}
	return ctrl.Result{RequeueAfter: max(wait, pauseAfter(l.reads))}, nil
}

// allowed reports whether pods of the node may be moved now. It reads the node and the Freezes from
// the API server, because the cache may be stale, and another manager may have become the leader.
func (r *drainReconciler) allowed(ctx context.Context, m *tidekeeperv1.NodeMaintenance, name string, of *drainOf) (bool, error) {
	node := &corev1.Node{}
	if err := r.apiReader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if node.UID != of.uid || !node.Spec.Unschedulable || node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation] != string(m.UID) {
		r.drains.doubt(name)
		r.tell(of.maintenance)
		return false, nil
	}
	frozen, err := r.freezes.RecentlyAnywhere(ctx)
	if err != nil {
		return false, fmt.Errorf("read the freezes in force: %w", err)
	}
	return frozen == nil, nil
}

// move evicts pods and requests restarts. It records evictions and requests that the API server
// refused, and continues with the other pods. Otherwise users of one namespace could stop the
// entire drain, because they can make requests in their namespace fail, for example with a
// ResourceQuota. If a ScheduledRestart has changed since it was read, move returns a conflict.
func (r *drainReconciler) move(ctx context.Context, m *tidekeeperv1.NodeMaintenance, node string, of *drainOf, in *moves.Input, out *moves.Output) error {
	r.replaceFirst(ctx, out)
	var conflict error
	for _, key := range out.Restart {
		switch err := r.restarts.request(ctx, m, in.Deployments[key], of.start); {
		case apierrors.IsConflict(err):
			conflict = err
			continue
		case err != nil:
			r.drains.requested(node, key, err.Error())
			continue
		}
		r.drains.requested(node, key, "")
		ctrl.LoggerFrom(ctx).Info("Requested a restart that moves pods", "node", node, "Deployment", klog.KRef(key.Namespace, key.Name))
	}
	slots := make(chan struct{}, atOnce)
	var done sync.WaitGroup
	for _, pod := range out.Evict {
		slots <- struct{}{}
		done.Go(func() {
			defer func() { <-slots }()
			r.evict(ctx, m, node, pod)
		})
	}
	done.Wait()
	return conflict
}

// replaceFirst annotates the pods that the requested restarts must replace first, so that a node
// waits for the replacements of its own pods and not for the entire rollout. If a pod cannot be
// annotated, the restart replaces its pods in any order.
func (r *drainReconciler) replaceFirst(ctx context.Context, out *moves.Output) {
	ctx, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	annotated := 0
	for _, pod := range out.First {
		if key, _ := rescue.DeploymentOf(pod); !slices.Contains(out.Restart, key) {
			continue
		}
		if annotated++; annotated > mostFirst || ctx.Err() != nil {
			return
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, pod.UID, corev1.PodDeletionCost, moves.LeastDeletionCost)
		err := r.client.Patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, client.RawPatch(types.MergePatchType, patch))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			ctrl.LoggerFrom(ctx).Info("Cannot annotate a pod that should be replaced first", "pod", klog.KObj(pod), "err", err.Error())
		}
	}
}

// evict evicts a pod. Errors, for example of a webhook that does not respond, are treated like
// refusals: the eviction is retried later.
func (r *drainReconciler) evict(ctx context.Context, m *tidekeeperv1.NodeMaintenance, node string, pod *corev1.Pod) {
	result, refusal, err := eviction.Evict(ctx, r.client, client.ObjectKeyFromObject(pod), pod.UID)
	r.metrics.evictions.WithLabelValues(string(result)).Inc()
	if err != nil {
		refusal = err.Error()
	}
	if r.drains.evicted(node, pod.UID, refusal); refusal == "" {
		ctrl.LoggerFrom(ctx).Info("Evicted a pod", "pod", klog.KObj(pod), "node", node, "NodeMaintenance", m.Name)
	}
}
