// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/pods"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// podAges says when the oldest pod of each workload was created.
type podAges struct {
	oldest map[forecast.TargetKey]time.Time
	// unread are the namespaces whose pods may not be listed.
	unread []string
}

// readPodAges reads the pods of namespaces.
func readPodAges(ctx context.Context, c client.Reader, namespaces []string) (podAges, error) {
	ages := podAges{oldest: map[forecast.TargetKey]time.Time{}}
	for _, namespace := range namespaces {
		err := cmdutil.EachPage(ctx, c, func() *corev1.PodList { return &corev1.PodList{} }, func(page *corev1.PodList) {
			for i := range page.Items {
				ages.add(&page.Items[i])
			}
		}, client.InNamespace(namespace))
		switch {
		case apierrors.IsForbidden(err):
			ages.unread = append(ages.unread, namespace)
		case err != nil:
			return podAges{}, cmdutil.AboutKind(err, "Pod", namespace, "")
		}
	}
	return ages, nil
}

func (a *podAges) add(pod *corev1.Pod) {
	kind, name := pods.Workload(pod)
	if kind == "" || !pods.IsActive(pod) {
		return
	}
	for _, k := range workload.Kinds {
		if k.Kind != kind {
			continue
		}
		key := forecast.KeyOf(pod.Namespace, k.Ref(name))
		if before, known := a.oldest[key]; !known || pod.CreationTimestamp.Time.Before(before) {
			a.oldest[key] = pod.CreationTimestamp.Time
		}
	}
}
