// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/pages"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// podAges holds the creation time of the oldest pod of each workload in some namespaces.
type podAges struct {
	oldest view.PodAges
	// unread lists the namespaces in which the user is not allowed to list pods.
	unread []string
}

// readPodAges lists the pods in the given namespaces, and returns the creation time of the oldest
// pod of each workload.
func readPodAges(ctx context.Context, c client.Reader, namespaces []string) (podAges, error) {
	ages := podAges{oldest: view.PodAges{}}
	for _, namespace := range namespaces {
		err := pages.Each(ctx, c, func() *corev1.PodList { return &corev1.PodList{} }, func(page *corev1.PodList) {
			for i := range page.Items {
				ages.oldest.Add(&page.Items[i])
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
