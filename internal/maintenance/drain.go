// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/kube/eviction"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
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
	recorder  events.EventRecorder
	// tell queues the NodeMaintenance with the given name.
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
	in, err := r.gather(ctx, m, request.Name, &of)
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
		wait = min(wait, max(time.Second, out.Wake.Sub(in.Now)))
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// allowed reports whether pods of the node may be moved now. It reads the node and the Freezes from
// the API server, because the cache may be stale, and another manager may have become the leader.
func (r *drainReconciler) allowed(ctx context.Context, m *tidekeeperv1.NodeMaintenance, name string, of *drainOf) (bool, error) {
	node := &corev1.Node{}
	if err := r.apiReader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if node.UID != of.uid || !node.Spec.Unschedulable || node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation] != string(m.UID) {
		return false, nil
	}
	frozen, err := r.freezes.RecentlyAnywhere(ctx)
	if err != nil {
		return false, fmt.Errorf("read the freezes in force: %w", err)
	}
	return frozen == nil, nil
}

// gather reads the facts about the pods of a node from the API server.
func (r *drainReconciler) gather(ctx context.Context, m *tidekeeperv1.NodeMaintenance, node string, of *drainOf) (in moves.Input, err error) {
	in = moves.Input{
		Now: r.clock.Now(), SingleReplicas: m.Spec.SingleReplicas, UnmanagedPods: m.Spec.UnmanagedPods, Refused: of.refused,
		Deployments: map[types.NamespacedName]*appsv1.Deployment{}, Restarts: map[types.NamespacedName]rescue.Restart{},
	}
	for next := ""; ; {
		page := &corev1.PodList{}
		if err := r.apiReader.List(ctx, page, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", node)}, client.Limit(podsPage), client.Continue(next)); err != nil {
			return in, fmt.Errorf("list the pods of node %s: %w", node, err)
		}
		in.Pods = append(in.Pods, page.Items...)
		if next = page.Continue; next == "" {
			break
		}
	}
	if !r.restarts.Served() {
		in.SingleReplicas = tidekeeperv1.SingleReplicasEvict
	}
	if in.LeavingElsewhere, err = r.leavingElsewhere(ctx, node); err != nil {
		return in, err
	}
	read := map[string]bool{}
	for i := range in.Pods {
		pod := &in.Pods[i]
		if !drain.Leaves(pod) {
			continue
		}
		if !read[pod.Namespace] {
			read[pod.Namespace] = true
			budgets := &policyv1.PodDisruptionBudgetList{}
			if err := r.apiReader.List(ctx, budgets, client.InNamespace(pod.Namespace)); err != nil {
				return in, fmt.Errorf("list PodDisruptionBudgets: %w", err)
			}
			in.Budgets = append(in.Budgets, budgets.Items...)
		}
		if err := r.addDeployment(ctx, &in, pod, of.start); err != nil {
			return in, err
		}
	}
	return in, nil
}

// leavingElsewhere returns, for each Deployment, the number of its pods on other nodes that are
// being drained, from the cache.
func (r *drainReconciler) leavingElsewhere(ctx context.Context, node string) (map[types.NamespacedName]int32, error) {
	leaving := map[types.NamespacedName]int32{}
	for _, other := range r.drains.others(node) {
		list := &corev1.PodList{}
		if err := r.client.List(ctx, list, client.MatchingFields{index.PodNode: other}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the cached pods of node %s: %w", other, err)
		}
		for i := range list.Items {
			if key, is := rescue.DeploymentOf(&list.Items[i]); is && pods.IsActive(&list.Items[i]) {
				leaving[key]++
			}
		}
	}
	return leaving, nil
}

// addDeployment reads the Deployment of a pod, and the restart that was requested for the
// Deployment.
func (r *drainReconciler) addDeployment(ctx context.Context, in *moves.Input, pod *corev1.Pod, start time.Time) error {
	key, _ := rescue.DeploymentOf(pod)
	if _, known := in.Deployments[key]; known || in.SingleReplicas != tidekeeperv1.SingleReplicasRestart || !moves.MayNeedRescue(pod) {
		return nil
	}
	deployment := &appsv1.Deployment{}
	if err := r.apiReader.Get(ctx, key, deployment); err != nil {
		return client.IgnoreNotFound(err)
	}
	in.Deployments[key] = deployment
	restart, requested, err := r.restarts.of(ctx, deployment, start)
	if requested {
		in.Restarts[key] = restart
	}
	return err
}

// move evicts pods and requests restarts. It records refused evictions, and continues with the
// other pods.
func (r *drainReconciler) move(ctx context.Context, m *tidekeeperv1.NodeMaintenance, node string, of *drainOf, in *moves.Input, out *moves.Output) error {
	for _, key := range out.Restart {
		if err := r.restarts.request(ctx, m, in.Deployments[key], of.start); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("Requested a restart that moves pods", "node", node, "Deployment", klog.KRef(key.Namespace, key.Name))
	}
	slots := make(chan struct{}, atOnce)
	var done sync.WaitGroup
	for _, pod := range out.Evict[:min(len(out.Evict), mostEvictions)] {
		slots <- struct{}{}
		done.Go(func() {
			defer func() { <-slots }()
			r.evict(ctx, m, node, pod)
		})
	}
	done.Wait()
	return nil
}

// evict evicts a pod. Errors, for example of a webhook that does not respond, are treated like
// refusals: the eviction is retried later.
func (r *drainReconciler) evict(ctx context.Context, m *tidekeeperv1.NodeMaintenance, node string, pod *corev1.Pod) {
	result, refusal, err := eviction.Evict(ctx, r.client, client.ObjectKeyFromObject(pod), pod.UID)
	r.metrics.evictions.WithLabelValues(string(result)).Inc()
	switch {
	case err != nil:
		r.drains.refuse(node, pod.UID, err.Error(), r.clock.Now())
	case refusal != "":
		r.drains.refuse(node, pod.UID, refusal, r.clock.Now())
	default:
		r.drains.accept(node, pod.UID)
		ctrl.LoggerFrom(ctx).Info("Evicted a pod", "pod", klog.KObj(pod), "node", node, "NodeMaintenance", m.Name)
	}
}
