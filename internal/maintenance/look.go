// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/maintenance/moves"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

// look reads the facts about the pods of a node for a reconcile. It reads the first mostRead
// Deployments of the node from the API server. It takes further Deployments from the cache, and
// reads them from the API server only if their pods are about to be moved. The number of its
// requests is therefore bounded, although tenants choose the number of Deployments.
type look struct {
	*drainReconciler
	node string
	of   *drainOf
	// reads is the number of requests to the API server so far. A request for a page of pods counts
	// as readsPerPage requests.
	reads int
	// confirmed is the set of Deployments that were read from the API server.
	confirmed map[types.NamespacedName]bool
}

// readsPerPage is the cost of a request for a page of pods, as a number of requests for single
// objects.
const readsPerPage = 10

// gather returns the facts about the pods of the node.
func (l *look) gather(ctx context.Context, m *tidekeeperv1.NodeMaintenance) (in moves.Input, err error) {
	in = moves.Input{
		Now: l.clock.Now(), SingleReplicas: m.Spec.SingleReplicas, UnmanagedPods: m.Spec.UnmanagedPods, Refused: l.of.refused, NotRequested: l.of.notRequested,
		Deployments: map[types.NamespacedName]*appsv1.Deployment{}, Restarts: map[types.NamespacedName]rescue.Restart{},
	}
	if !l.restarts.Served() {
		in.SingleReplicas = tidekeeperv1.SingleReplicasEvict
	}
	if in.Pods, err = l.pods(ctx); err != nil {
		return in, err
	}
	// The namespaces are recorded before their PodDisruptionBudgets are read, so that each later
	// change of a budget causes another look.
	l.drains.listed(l.node, in.Pods)
	if in.LeavingElsewhere, err = l.leavingElsewhere(ctx); err != nil {
		return in, err
	}
	read := map[string]bool{}
	for i := range in.Pods {
		pod := &in.Pods[i]
		if !drain.Leaves(pod) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if !read[pod.Namespace] {
			read[pod.Namespace] = true
			l.reads++
			budgets := &policyv1.PodDisruptionBudgetList{}
			if err := l.apiReader.List(ctx, budgets, client.InNamespace(pod.Namespace)); err != nil {
				return in, fmt.Errorf("list PodDisruptionBudgets: %w", err)
			}
			in.Budgets = append(in.Budgets, budgets.Items...)
		}
		key, _ := rescue.DeploymentOf(pod)
		if _, known := in.Deployments[key]; known || in.SingleReplicas != tidekeeperv1.SingleReplicasRestart || !moves.MayNeedRescue(pod) {
			continue
		}
		get := l.cachedDeployment
		if len(l.confirmed) < mostRead {
			get = l.liveDeployment
		}
		if err := l.addDeployment(ctx, &in, key, get); err != nil {
			return in, err
		}
	}
	return in, nil
}

// pods lists the pods of the node from the API server, because the cache may lack a pod that was
// just bound to the node.
func (l *look) pods(ctx context.Context) (list []corev1.Pod, err error) {
	for next := ""; ; {
		l.reads += readsPerPage
		page := &corev1.PodList{}
		if err := l.apiReader.List(ctx, page, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", l.node)}, client.Limit(podsPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list the pods of node %s: %w", l.node, err)
		}
		list = append(list, page.Items...)
		if next = page.Continue; next == "" {
			return list, nil
		}
	}
}

// leavingElsewhere returns, for each Deployment, the number of its cached pods on other nodes that
// are being drained.
func (l *look) leavingElsewhere(ctx context.Context) (map[types.NamespacedName]int32, error) {
	leaving := map[types.NamespacedName]int32{}
	for _, other := range l.drains.others(l.node) {
		list := &corev1.PodList{}
		if err := l.client.List(ctx, list, client.MatchingFields{index.PodNode: other}, client.UnsafeDisableDeepCopy); err != nil {
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

// confirm makes sure that the decision to move pods does not depend on cached Deployments. It reads
// the Deployments of these pods from the API server, and decides again. It repeats this until the
// decision moves only pods whose Deployments were read. It reads at most mostConfirmed Deployments;
// pods of other Deployments are left to later reconciles.
func (l *look) confirm(ctx context.Context, in *moves.Input, out moves.Output) (moves.Output, error) {
	for {
		out.Evict, out.Restart = out.Evict[:min(len(out.Evict), mostEvictions)], out.Restart[:min(len(out.Restart), mostRestarts)]
		read := 0
		for _, key := range moved(&out) {
			if _, known := in.Deployments[key]; !known || l.confirmed[key] || len(l.confirmed) >= mostRead+mostConfirmed {
				continue
			}
			if err := l.addDeployment(ctx, in, key, l.liveDeployment); err != nil {
				return out, err
			}
			read++
		}
		if read == 0 {
			break
		}
		out = moves.Decide(*in)
	}
	unconfirmed := func(key types.NamespacedName) bool {
		_, known := in.Deployments[key]
		return known && !l.confirmed[key]
	}
	out.Restart = slices.DeleteFunc(out.Restart, unconfirmed)
	out.Evict = slices.DeleteFunc(out.Evict, func(pod *corev1.Pod) bool {
		key, is := rescue.DeploymentOf(pod)
		return is && unconfirmed(key)
	})
	return out, nil
}

// moved lists the Deployments whose pods a decision moves. It may list a Deployment repeatedly.
func moved(out *moves.Output) []types.NamespacedName {
	keys := slices.Clone(out.Restart)
	for _, pod := range out.Evict {
		if key, is := rescue.DeploymentOf(pod); is {
			keys = append(keys, key)
		}
	}
	return keys
}

// addDeployment reads a Deployment with `get`, and adds the Deployment and the restart that was
// requested for it to `in`. If the Deployment does not exist, its entry becomes nil, and the
// restart is removed. The entry also becomes nil, so that the pods are evicted, if this manager
// restarts no workloads in the namespace (--namespaces).
func (l *look) addDeployment(ctx context.Context, in *moves.Input, key types.NamespacedName, get func(context.Context, types.NamespacedName) (*appsv1.Deployment, error)) error {
	if !l.restarts.Serves(key.Namespace) {
		l.confirmed[key] = true
		in.Deployments[key] = nil
		return nil
	}
	deployment, err := get(ctx, key)
	if apierrors.IsNotFound(err) {
		delete(in.Restarts, key)
		in.Deployments[key] = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("get Deployment %s: %w", key, err)
	}
	in.Deployments[key] = deployment
	restart, requested, err := l.restarts.of(ctx, deployment, l.of.start)
	delete(in.Restarts, key)
	if requested {
		in.Restarts[key] = restart
	}
	return err
}

// cachedDeployment returns a Deployment from the cache.
func (l *look) cachedDeployment(ctx context.Context, key types.NamespacedName) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	return deployment, l.client.Get(ctx, key, deployment)
}

// liveDeployment returns a Deployment from the API server.
func (l *look) liveDeployment(ctx context.Context, key types.NamespacedName) (*appsv1.Deployment, error) {
	l.reads++
	l.confirmed[key] = true
	deployment := &appsv1.Deployment{}
	return deployment, l.apiReader.Get(ctx, key, deployment)
}

// pauseAfter returns the minimum time until the pods of a node are listed again, after a reconcile
// that sent the given number of read requests. Without this pause, users could overload the API
// server with pods that change often.
func pauseAfter(reads int) time.Duration { return max(lookPause, time.Duration(reads)*pausePerRead) }
