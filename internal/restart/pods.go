// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/manager/index"
	"tidekeeper.dev/tidekeeper/internal/podstartup"
)

// startupsOf returns how long the pods that the last restart of a target made
// took to become ready, of those that are ready now and stay. Where no controller
// watches pods there are none to be seen, and none are watched for this alone.
func (r *reconciler) startupsOf(ctx context.Context, namespace string, t *target) ([]time.Duration, error) {
	took := []time.Duration{}
	pods := &corev1.PodList{}
	err := r.cache.List(ctx, pods, client.InNamespace(namespace),
		client.MatchingFields{index.PodRestart: index.RestartKey(t.kind, t.name, t.restartedAt)}, client.UnsafeDisableDeepCopy)
	if notCached := (*cache.ErrResourceNotCached)(nil); errors.As(err, &notCached) {
		return took, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the new pods of %s: %w", t, err)
	}
	for i := range pods.Items {
		if length, ok := podstartup.ReadyAfter(&pods.Items[i]); ok && pods.Items[i].DeletionTimestamp == nil {
			took = append(took, length)
		}
	}
	return took, nil
}
