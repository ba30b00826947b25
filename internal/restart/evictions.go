// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/eviction"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// look reads the pods of a workload from the API server. With pods from a stale cache, more pods
// could be evicted than may be unavailable.
func (r *podReader) look(ctx context.Context, namespace string, t *workload.State) (*decision.Pods, error) {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	var leftOut map[string]*corev1.Node
	if t.PerNode {
		var err error
		leftOut, err = notReady(ctx, r.cache)
		if notCached := (*cache.ErrResourceNotCached)(nil); err != nil && !errors.As(err, &notCached) {
			return nil, err
		}
	}
	found := &decision.Pods{Startups: map[string]time.Duration{}}
	err := r.eachPage(ctx, namespace, t, func(page []corev1.Pod) {
		for i := range page {
			pod := &page[i]
			if !pods.IsActive(pod) || leftOut[pod.Spec.NodeName] != nil {
				continue
			}
			// For a target that is read through its scale subresource, the selector alone
			// identifies the pods.
			if kind, name := pods.Workload(pod); !t.Scaled && (kind != t.Kind || name != t.Name) {
				continue
			}
			found.Active = append(found.Active, evict.Pod{
				Name: pod.Name, UID: pod.UID, Created: pod.CreationTimestamp.Time, Ready: pods.IsConditionTrue(pod, corev1.PodReady),
			})
			if summary := podtimeline.Summarize(pod); summary != nil {
				pod.Status.Conditions = append(pod.Status.Conditions, *summary)
			}
			if took, ok := podtimeline.TimeToReady(pod); ok {
				found.Startups[pod.Name] = took
			}
		}
	})
	return found, err
}

// evictor evicts the pods that a decision lists.
type evictor struct {
	client    client.Client
	apiReader client.Reader
	clock     clock.PassiveClock
	attempts  *evictionAttempts
	metrics   *evictionMetrics
	enqueue   func([]types.NamespacedName)
}

// evict evicts pods through the API server, which enforces PodDisruptionBudgets. It stops at the
// first rejected eviction. written is true if the status was just written. The ScheduledRestart is
// then known not to have changed, and is not read again before the evictions.
func (e *evictor) evict(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, next []evict.Pod, written bool) error {
	if !written {
		if err := e.recheckVersion(ctx, key, restart); err != nil {
			return err
		}
	}
	for _, pod := range next {
		refusal, err := e.evictPod(ctx, key.Namespace, pod)
		if err != nil {
			return err
		}
		now := e.clock.Now()
		e.attempts.note(key, restart, func(a *decision.Attempts) {
			if a.Evicted = refusal == ""; a.Evicted || a.Refusal == "" {
				a.RefusedSince = now
			}
			a.Refusal, a.RefusedAt = refusal, now
		})
		if refusal != "" {
			ctrl.LoggerFrom(ctx).Info("The eviction of a pod was refused", "pod", pod.Name, "why", refusal)
			e.enqueue([]types.NamespacedName{key})
			return nil
		}
		ctrl.LoggerFrom(ctx).Info("Evicted a pod", "pod", pod.Name, "target", restart.Status.Active.TargetRef, "tick", workload.FormatTime(restart.Status.Active.ScheduledTime.Time))
	}
	return nil
}

// evictPod evicts a pod, identified by its UID. If the eviction is rejected, evictPod returns the
// reason as refusal. A pod that no longer exists counts as evicted.
func (e *evictor) evictPod(ctx context.Context, namespace string, pod evict.Pod) (refusal string, err error) {
	result, refusal, err := eviction.Evict(ctx, e.client, types.NamespacedName{Namespace: namespace, Name: pod.Name}, pod.UID)
	e.metrics.count(result)
	if refusal != "" {
		refusal = text.Shorten("an eviction is refused: "+refusal, tidekeeperv1.MaxRefusalLength)
	}
	return refusal, err
}

// recheckVersion returns a conflict if the ScheduledRestart has changed since the decision.
// Otherwise a process that has lost the leader election could evict pods for a restart that has
// already ended.
func (e *evictor) recheckVersion(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind("ScheduledRestart"))
	if err := e.apiReader.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read whether the restart has changed before pods are evicted: %w", err)
	}
	if live.UID != restart.UID || live.ResourceVersion != restart.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Group: tidekeeperv1.GroupName, Resource: "scheduledrestarts"}, restart.Name,
			errors.New("it has changed since it was decided which pods to evict"))
	}
	return nil
}
