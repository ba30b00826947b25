// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/manager/index"
	"tidekeeper.dev/tidekeeper/internal/podstartup"
)

// startupsOf returns how long the pods that the last restart of a target made
// took to become ready, of those that are ready now and stay. Where no controller
// watches pods there are none to be seen, and none are watched for this alone.
func (r *reconciler) startupsOf(ctx context.Context, namespace string, t *target) ([]time.Duration, error) {
	key := index.RestartKey(t.kind, t.name, t.restartedAt)
	cached := &corev1.PodList{}
	err := r.cache.List(ctx, cached, client.InNamespace(namespace), client.MatchingFields{index.PodRestart: key}, client.UnsafeDisableDeepCopy)
	if notCached := (*cache.ErrResourceNotCached)(nil); errors.As(err, &notCached) {
		return []time.Duration{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the new pods of %s: %w", t, err)
	}
	took := readyAfter(cached.Items)
	if len(took) >= int(t.pods) {
		return took, nil
	}

	// The workload may say that all are ready before the cache of pods knows.
	selector, err := metav1.LabelSelectorAsSelector(t.selector)
	if err != nil {
		return nil, fmt.Errorf("the selector of %s: %w", t, err)
	}
	live := &corev1.PodList{}
	if err := r.live.List(ctx, live, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list the new pods of %s: %w", t, err)
	}
	restartOf := index.PodRestartOf(podstartup.RestartedAt)
	for i := range live.Items {
		pod := &live.Items[i]
		if summary := podstartup.Summarize(pod); summary != nil {
			pod.Status.Conditions = append(pod.Status.Conditions, *summary)
		}
	}
	return readyAfter(slices.DeleteFunc(live.Items, func(pod corev1.Pod) bool { return !slices.Contains(restartOf(&pod), key) })), nil
}

// readyAfter returns how long pods took that are summed up, are ready and stay.
func readyAfter(pods []corev1.Pod) []time.Duration {
	took := []time.Duration{}
	for i := range pods {
		if length, ok := podstartup.ReadyAfter(&pods[i]); ok && pods[i].DeletionTimestamp == nil {
			took = append(took, length)
		}
	}
	return took
}
