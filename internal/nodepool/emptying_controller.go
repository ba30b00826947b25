// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/kube/eviction"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/text"
)

const (
	// emptyingConcurrency is the maximum number of nodes from which pods are evicted at the same
	// time. Each of these nodes has at most one eviction request in flight.
	emptyingConcurrency = 8
	// maxRefusals is the number of refused evictions in a namespace after which the remaining pods
	// of that namespace are skipped for the rest of the reconcile.
	maxRefusals = 4
	// podPage is the maximum number of pods in a page when the pods of a node are listed from the
	// API server.
	podPage = 500
)

// emptyingReconciler empties nodes before they get NoExecute taints with the eviction
// WithinBudgets. It evicts the pods within their PodDisruptionBudgets, and permits the taints to be
// added once the pods are gone.
type emptyingReconciler struct {
	client client.Client
	// apiReader reads from the API server, bypassing the cache.
	apiReader client.Reader
	// heldBack returns the Freeze that currently forbids evictions, or nil if there is none. again
	// is the time after which to check again.
	heldBack func(ctx context.Context, now time.Time) (held *period.Period, again time.Duration, err error)
	recorder events.EventRecorder
	cluster  *state.Cluster
	feed     *eventFeed
	metrics  *metrics
	clock    clock.PassiveClock
	memories *emptyingMemories
	// minDuration is the minimum time for which a node stays closed to new pods before it gets its
	// NoExecute taints. After twice this time without an accepted eviction or a pod that leaves,
	// the node counts as blocked.
	minDuration time.Duration
}

// Reconcile implements [ctrl.TypedReconciler]. The request names a node.
func (r *emptyingReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	taints := r.cluster.Emptying.Taints(request.Name)
	node := &corev1.Node{}
	err := r.client.Get(ctx, request.NamespacedName, node)
	if len(taints) == 0 || apierrors.IsNotFound(err) {
		r.memories.forget(request.Name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	list := &corev1.PodList{}
	if err := r.client.List(ctx, list, client.MatchingFields{index.PodNode: node.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the pods of a node: %w", err)
	}
	memory := r.memories.of(node.Name, list.Items, r.clock.Now())
	decide := func() plan.EmptyingPlan {
		return plan.DecideEmptying(plan.EmptyingInput{
			Taints: taints, NodeTaints: node.Spec.Taints, Pods: lists.Pointers(list.Items), Attempts: &memory.attempts, MinDuration: r.minDuration,
		}, r.clock.Now())
	}
	decided := decide()
	if len(decided.Evict) > 0 || decided.Emptied {
		switch held, again, err := r.heldBack(ctx, r.clock.Now()); {
		case err != nil:
			return ctrl.Result{}, err
		case held != nil:
			ctrl.LoggerFrom(ctx).V(1).Info("The pods of a closed node wait", "node", klog.KObj(node), "for", held.String())
			memory.hold(r.clock.Now())
			r.feed.push(r.cluster.Emptying.Record(node.Name, state.EmptyingProgress{Left: decided.Left}))
			return ctrl.Result{RequeueAfter: again}, nil
		}
	}
	if len(decided.Evict) > 0 {
		if err := r.recheck(ctx, node, taints); err != nil {
			return ctrl.Result{}, err
		}
		r.evict(ctx, node.Name, decided.Evict, memory)
		// The decision is repeated, because the last pods to leave the node may just have been
		// evicted. The node must then get its NoExecute taints at once, before the scheduler places
		// successors of these pods on the node.
		decided = decide()
	}
	r.report(ctx, node, taints, &decided, memory)
	if decided.Emptied {
		for _, t := range taints {
			r.feed.push(r.cluster.Emptying.AllowTaints(t.Pool, node.Name))
		}
	}
	return ctrl.Result{RequeueAfter: max(decided.Again, time.Second)}, nil
}

// evict evicts pods one after the other. After a refused eviction, it skips the other pods of the
// same controller. After maxRefusals refusals in a namespace, it skips the other pods in that
// namespace. It stops if the node is no longer being emptied, or if the API server returns another
// error.
func (r *emptyingReconciler) evict(ctx context.Context, node string, next []*corev1.Pod, memory *emptyingMemory) {
	log := ctrl.LoggerFrom(ctx)
	refusals, refused := map[string]int{}, map[types.UID]bool{}
	for _, pod := range next {
		group := plan.EvictionGroup(pod)
		if refused[group] || refusals[pod.Namespace] >= maxRefusals {
			continue
		}
		if ctx.Err() != nil || len(r.cluster.Emptying.Taints(node)) == 0 {
			return
		}
		result, refusal, err := eviction.Evict(ctx, r.client, client.ObjectKeyFromObject(pod), pod.UID)
		r.metrics.evictions.WithLabelValues(string(result)).Inc()
		if err != nil {
			refusal = err.Error()
		}
		memory.note(pod, refusal, r.clock.Now())
		switch result {
		case eviction.Accepted:
			log.Info("Evicted a pod", "node", node, "pod", klog.KObj(pod))
		case eviction.Refused:
			log.V(1).Info("The eviction of a pod was refused", "node", node, "pod", klog.KObj(pod), "why", refusal)
			refused[group] = true
			refusals[pod.Namespace]++
		case eviction.Error:
			log.Error(err, "Cannot evict a pod", "node", node, "pod", klog.KObj(pod))
			return
		case eviction.Gone:
		}
	}
}

// report passes the progress of emptying the node to the model, for the status of the pools. If the
// node has just begun to count as blocked, report records an event for each pool whose taints the
// node is being emptied for.
func (r *emptyingReconciler) report(ctx context.Context, node *corev1.Node, taints []plan.TaintBeingPrepared, decided *plan.EmptyingPlan, memory *emptyingMemory) {
	blocked, began := memory.look(decided, 2*r.minDuration, r.clock.Now())
	progress := state.EmptyingProgress{
		Left: decided.Left, Pod: decided.Stays, Because: text.Shorten(decided.StaysBecause, tidekeeperv1.MaxEmptyingMessageLength), BlockedSince: blocked,
	}
	r.feed.push(r.cluster.Emptying.Record(node.Name, progress))
	if !began {
		return
	}
	told := map[string]bool{}
	for _, t := range taints {
		pool := &tidekeeperv1.NodePool{}
		if told[t.Pool] || r.client.Get(ctx, client.ObjectKey{Name: t.Pool}, pool) != nil {
			continue
		}
		told[t.Pool] = true
		r.recorder.Eventf(pool, node, corev1.EventTypeWarning, tidekeeperv1.EventEvictionBlocked, "Evict",
			"%s", blockedNodeMessage(node.Name, int32(progress.Left), progress.Pod, progress.Because))
	}
}

// recheck reads the node from the API server, and returns a conflict error unless the node is still
// closed for the same taints since the same time. Without this check, a process that has lost the
// leader election and has a stale cache could evict pods.
func (r *emptyingReconciler) recheck(ctx context.Context, node *corev1.Node, taints []plan.TaintBeingPrepared) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	// The manager may list nodes but not get them, so a list with a field selector is used.
	if err := r.apiReader.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: node.Name}); err != nil {
		return fmt.Errorf("read whether the node is still closed before pods are evicted: %w", err)
	}
	for i := range list.Items {
		closed := ownership.ParseClosed(list.Items[i].Annotations[tidekeeperv1.OwnershipAnnotation])
		same := list.Items[i].UID == node.UID
		for _, t := range taints {
			same = same && closed[t.Pool][t.Taint.Key].Equal(t.Since)
		}
		if same {
			return nil
		}
	}
	return apierrors.NewConflict(corev1.Resource("nodes"), node.Name, errors.New("it has changed since it was decided which pods to evict"))
}

// podsLeft reads the pods of a node from the API server, and reports whether the taints would
// delete any of them. A stale cache might lack such a pod, and a deletion by a taint bypasses
// PodDisruptionBudgets and cannot be undone.
func podsLeft(ctx context.Context, apiReader client.Reader, node *corev1.Node, taints []plan.TaintBeingPrepared, now time.Time) (bool, error) {
	for i := range taints {
		if taints[i].Since.IsZero() {
			taints[i].Since = now // The node was not closed, because no pod on it seemed to be affected.
		}
	}
	list := &corev1.PodList{}
	for {
		options := []client.ListOption{client.MatchingFields{index.PodNode: node.Name}, client.Limit(podPage), client.Continue(list.Continue)}
		if err := apiReader.List(ctx, list, options...); err != nil {
			return false, fmt.Errorf("list the pods of a node to make sure that a NoExecute taint deletes none: %w", err)
		}
		decided := plan.DecideEmptying(plan.EmptyingInput{Taints: taints, NodeTaints: node.Spec.Taints, Pods: lists.Pointers(list.Items)}, now)
		if !decided.Emptied {
			return true, nil
		}
		if list.Continue == "" {
			return false, nil
		}
	}
}

// blockedNodeMessage describes a node that cannot be emptied within budgets.
func blockedNodeMessage(node string, left int32, pod, because string) string {
	return fmt.Sprintf("node %s cannot be emptied within budgets: %d %s left, for instance %s: %s",
		node, left, plural(int(left), "pod is", "pods are"), pod, because)
}
