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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// Limits for reading whole pods from the API server. The reads only serve a statistic.
const (
	podsPage    = 250
	podsTimeout = 10 * time.Second
)

// podReader reads the pods of workloads.
type podReader struct {
	apiReader, cache client.Reader
	// pods reads pods from the cache.
	pods *podcache.Workloads
}

// startups returns how long the new pods of a restart took to become ready. Errors are logged and do not fail
// the restart.
func (r *podReader) startups(ctx context.Context, namespace string, kind *workload.Kind, t *workload.State) []time.Duration {
	if !kind.MarksPods {
		// The new pods cannot be distinguished from the old pods.
		return []time.Duration{}
	}
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	took, err := r.listStartups(ctx, namespace, t)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Recording a restart without the startup of its pods", "error", err.Error())
		return []time.Duration{}
	}
	return took
}

// listStartups returns how long the pods of the last restart took to become ready. Only pods that are ready
// and not being deleted count. It returns none if no controller watches pods, as pods are not watched for
// this alone.
func (r *podReader) listStartups(ctx context.Context, namespace string, t *workload.State) ([]time.Duration, error) {
	key := index.RestartKey(t.Kind, t.Name, t.RestartedAt)
	cached := &corev1.PodList{}
	err := r.cache.List(ctx, cached, client.InNamespace(namespace), client.MatchingFields{index.PodRestart: key}, client.UnsafeDisableDeepCopy)
	if notCached := (*cache.ErrResourceNotCached)(nil); errors.As(err, &notCached) {
		return []time.Duration{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the new pods of %s: %w", t, err)
	}
	took := readyAfter(cached.Items)
	if len(took) >= int(t.Updates) {
		return took, nil
	}

	// The workload may report all pods as ready before the cache of pods shows them.
	restartOf := index.PodRestartOf(podtimeline.RestartedAt)
	took = []time.Duration{}
	err = r.eachPage(ctx, namespace, t, func(page []corev1.Pod) {
		for i := range page {
			pod := &page[i]
			if summary := podtimeline.Summarize(pod); summary != nil {
				pod.Status.Conditions = append(pod.Status.Conditions, *summary)
			}
		}
		took = append(took, readyAfter(slices.DeleteFunc(page, func(pod corev1.Pod) bool { return !slices.Contains(restartOf(&pod), key) }))...)
	})
	return took, err
}

// readyAfter returns how long pods took to become ready. Only pods count that are ready, not being deleted,
// and have a start-up summary.
func readyAfter(pods []corev1.Pod) []time.Duration {
	took := []time.Duration{}
	for i := range pods {
		if length, ok := podtimeline.TimeToReady(&pods[i]); ok && pods[i].DeletionTimestamp == nil {
			took = append(took, length)
		}
	}
	return took
}
