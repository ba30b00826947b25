// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionresponder

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/evictionresponder/decision"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

// facts holds the input of a decision about an Eviction.
type facts struct {
	decision.Input
	// known is the ScheduledRestart that moves the pods of the Deployment; nil if there is none.
	known *tidekeeperv1.ScheduledRestart
}

// gather returns the facts about an Eviction. It reads the pod and its Deployment from the API
// server.
func (r *reconciler) gather(ctx context.Context, e *lifecyclev1alpha1.Eviction) (in facts, err error) {
	in.Input = decision.Input{Now: r.clock.Now(), Eviction: e, Restarts: r.requests.Serves(e.Namespace)}
	if in.Pod, err = r.target(ctx, e); err != nil || in.Pod == nil {
		return in, err
	}
	key, is := rescue.DeploymentOf(in.Pod)
	if !is {
		return in, nil
	}
	deployment := &appsv1.Deployment{}
	if err := r.apiReader.Get(ctx, key, deployment); apierrors.IsNotFound(err) {
		return in, nil
	} else if err != nil {
		return in, fmt.Errorf("get Deployment %s: %w", key.Name, err)
	}
	in.Deployment = deployment
	if in.Restarts {
		if in.known, err = r.requests.Known(ctx, deployment); err != nil {
			return in, err
		}
		in.Restart = restartOf(in.known, in.Pod, decision.Entry(e).StartTime.Time, in.Now)
		if in.Restart != nil && in.Restart.InProgress() {
			return in, nil
		}
		if in.Restart != nil {
			// The pod may have been deleted since the first read. Read it again now that the
			// restart has ended.
			if in.Pod, err = r.target(ctx, e); err != nil || in.Pod == nil {
				return in, err
			}
		}
	}
	return in, r.addRules(ctx, &in.Input, key)
}

// restartOf returns the state of the restart that was requested since the responder's start time.
// If no restart was requested since then, it returns an earlier restart that is in progress and
// also replaces this pod, although it was requested for another pod. It returns nil if there is
// neither.
func restartOf(known *tidekeeperv1.ScheduledRestart, pod *corev1.Pod, start, now time.Time) *rescue.Restart {
	if known == nil {
		return nil
	}
	if restart, requested := rescue.StateOf(known, start, now); requested {
		return &restart
	}
	if restart, requested := rescue.StateOf(known, pod.CreationTimestamp.Add(time.Second), now); requested && restart.InProgress() {
		return &restart
	}
	return nil
}

// target reads the pod of an Eviction from the API server. It returns nil if the pod does not
// exist.
func (r *reconciler) target(ctx context.Context, e *lifecyclev1alpha1.Eviction) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	name := e.Spec.Target.Pod.Name
	if err := r.apiReader.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: name}, pod); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // No pod is a fact, as in decision.Input.
	} else if err != nil {
		return nil, fmt.Errorf("get pod %s: %w", name, err)
	}
	return pod, nil
}

// addRules adds the facts that decide whether a restart should move the pod: the
// PodDisruptionBudgets, and the number of other ready pods of the Deployment that are being
// evicted.
func (r *reconciler) addRules(ctx context.Context, in *decision.Input, deployment types.NamespacedName) error {
	budgets := &policyv1.PodDisruptionBudgetList{}
	if err := r.apiReader.List(ctx, budgets, client.InNamespace(deployment.Namespace)); err != nil {
		return fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	in.Budgets = budgets.Items
	evictions, err := evictionsIn(ctx, r.client, deployment.Namespace)
	if err != nil {
		return err
	}
	for i := range evictions {
		e := &evictions[i]
		if e.Name == in.Eviction.Name || !decision.InProgress(e) {
			continue
		}
		pod, err := r.cachedTarget(ctx, e)
		if err != nil {
			return err
		}
		// The cache replaces a pod's conditions by a summary (see podtimeline.SummaryCondition),
		// from which the readiness is read.
		if pod == nil || !pods.IsActive(pod) || !podtimeline.IsReady(podtimeline.Summary(pod)) {
			continue
		}
		if key, _ := rescue.DeploymentOf(pod); key == deployment {
			in.Leaving++
		}
	}
	return nil
}

// cachedTarget returns the pod of an Eviction from the cache. It returns nil if the pod does not
// exist, or if the Eviction does not target a pod.
func (r *reconciler) cachedTarget(ctx context.Context, e *lifecyclev1alpha1.Eviction) (*corev1.Pod, error) {
	target := e.Spec.Target.Pod
	if target == nil {
		return nil, nil //nolint:nilnil // An Eviction of another kind of target has no pod.
	}
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: target.Name}, pod, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the cached pod %s: %w", target.Name, err)
	}
	if pod.UID != target.UID {
		return nil, nil //nolint:nilnil // Another pod has the name of the target by now.
	}
	return pod, nil
}

// evictionsIn returns the cached Evictions of a namespace, or none if the cluster does not serve
// the kind Eviction.
func evictionsIn(ctx context.Context, reader client.Reader, namespace string) ([]lifecyclev1alpha1.Eviction, error) {
	list := &lifecyclev1alpha1.EvictionList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list Evictions: %w", err)
	}
	return list.Items, nil
}
