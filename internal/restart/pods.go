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

// Limits for reads of pods from the API server: the page size of a list, and the time limit for all
// pages.
const (
	podsPage    = 250
	podsTimeout = 10 * time.Second
)

// podReader reads the pods of target workloads, from the cache or the API server.
type podReader struct {
	apiReader, cache client.Reader
	// pods provides compact records of pods from the cache.
	pods *podcache.Workloads
}

// startups returns the startup times of a restart's new pods. Errors are logged and do not fail the
// restart.
func (r *podReader) startups(ctx context.Context, namespace string, kind *workload.Kind, t *workload.State) []time.Duration {
	if !kind.MarksPods {
		// The pods of this kind do not show which restart created them, so no startup times are
		// known.
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

// listStartups returns the startup times of the pods that the last restart created. It considers
// only pods that are ready and not being deleted. If no controller watches pods, it returns an
// empty list, since pods are not watched for this statistic alone.
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

	// The workload may report all pods as ready before the pod cache shows this. If the cache shows
	// too few ready pods, read the pods from the API server.
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

// readyAfter returns the times that pods took to become ready. It ignores pods that are not ready,
// are being deleted, or have no startup summary.
func readyAfter(pods []corev1.Pod) []time.Duration {
	took := []time.Duration{}
	for i := range pods {
		if length, ok := podtimeline.TimeToReady(&pods[i]); ok && pods[i].DeletionTimestamp == nil {
			took = append(took, length)
		}
	}
	return took
}
