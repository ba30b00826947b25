// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// ages returns the ages of a workload's pods according to the cache. It reads compact records
// instead of Pods. When a window opens for many ScheduledRestarts at once, many workers may call
// ages at the same time.
func (r *podReader) ages(namespace string, t *workload.State) (*decision.PodAges, error) {
	if !r.pods.Watched() {
		return &decision.PodAges{Unwatched: true}, nil
	}
	oldest, err := r.pods.Oldest(podsOf(namespace, t))
	if err != nil {
		return nil, fmt.Errorf("look at the pods of %s: %w", t, err)
	}
	return &decision.PodAges{Oldest: oldest}, nil
}

// podsOf returns the cache query for the pods of a workload.
func podsOf(namespace string, t *workload.State) podcache.Workload {
	of := podcache.Workload{Namespace: namespace, Kind: t.Kind, Name: t.Name}
	if t.PerNode {
		of.UID = t.UID
	}
	return of
}

// liveAges returns the ages of a workload's pods according to the API server.
func (r *podReader) liveAges(ctx context.Context, namespace string, t *workload.State) (*decision.PodAges, error) {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	ages := &decision.PodAges{Live: true}
	return ages, r.eachPage(ctx, namespace, t, func(page []corev1.Pod) { addAges(ages, page, t) })
}

// addAges updates ages with the creation times of the listed pods that belong to the workload.
func addAges(ages *decision.PodAges, list []corev1.Pod, t *workload.State) {
	for i := range list {
		pod := &list[i]
		if kind, name := pods.Workload(pod); kind != t.Kind || name != t.Name || !pods.IsActive(pod) {
			continue
		}
		if created := pod.CreationTimestamp.Time; ages.Oldest.IsZero() || created.Before(ages.Oldest) {
			ages.Oldest = created
		}
	}
}

// eachPage lists the pods that match the workload's selector from the API server, and calls do with
// each page.
func (r *podReader) eachPage(ctx context.Context, namespace string, t *workload.State, do func([]corev1.Pod)) error {
	selector, err := metav1.LabelSelectorAsSelector(t.Selector)
	if err != nil {
		return fmt.Errorf("parse the selector of %s: %w", t, err)
	}
	for page := (&corev1.PodList{}); ; {
		if err := r.apiReader.List(ctx, page, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector},
			client.Limit(podsPage), client.Continue(page.Continue)); err != nil {
			return fmt.Errorf("list the pods of %s: %w", t, err)
		}
		do(page.Items)
		if page.Continue == "" {
			return nil
		}
	}
}
