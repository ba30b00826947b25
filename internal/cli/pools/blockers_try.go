// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// mostTries is the maximum number of concurrent dry-run eviction requests.
const mostTries = 10

// tryEvictions sends a dry-run eviction for each pod that a drain of the nodes would evict, except
// pods that a PodDisruptionBudget is known to block. It adds a blocker for each eviction that the
// API server rejects.
func tryEvictions(ctx context.Context, c client.Client, running []*corev1.Pod, all []view.NodeBlockers) error {
	at := map[string]*view.NodeBlockers{}
	for i := range all {
		at[all[i].Node] = &all[i]
	}
	var mu sync.Mutex
	refused := map[*view.NodeBlockers][]drain.Refusal{}
	tries, ctx := errgroup.WithContext(ctx)
	tries.SetLimit(mostTries)
	for _, pod := range running {
		n := at[pod.Spec.NodeName]
		if n == nil || !drain.Leaves(pod) || pod.DeletionTimestamp != nil || heldByBudget(n, pod) {
			continue
		}
		tries.Go(func() error {
			eviction := &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
				DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
			}
			err := c.SubResource("eviction").Create(ctx, pod, eviction, client.DryRunAll)
			switch {
			case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
				return nil // The pod would be evicted, or was deleted or replaced.
			case ctx.Err() != nil, apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "admission webhook"), apierrors.IsUnauthorized(err), apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			refused[n] = append(refused[n], drain.Refusal{Pod: pod, Message: err.Error()})
			return nil
		})
	}
	if err := tries.Wait(); err != nil {
		return err
	}
	for n, list := range refused {
		n.Blockers = append(n.Blockers, drain.Refusals(list)...)
		drain.Sort(n.Blockers)
	}
	return nil
}

// heldByBudget reports whether the node's blockers already include a PodDisruptionBudget that
// prevents the pod's eviction.
func heldByBudget(n *view.NodeBlockers, pod *corev1.Pod) bool {
	return slices.ContainsFunc(n.Blockers, func(b drain.Blocker) bool {
		return (b.Reason == drain.Budget || b.Reason == drain.SeveralBudgets) &&
			b.Namespace == pod.Namespace && b.Workload == pods.WorkloadName(pod) && slices.Contains(b.Pods, pod.Name)
	})
}
