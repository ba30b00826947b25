// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// podAges has the creation time of the oldest pod of each workload.
type podAges struct {
	oldest view.PodAges
	// unread are the namespaces whose pods the user may not list.
	unread []string
}

// readPodAges reads the pods of these namespaces.
func readPodAges(ctx context.Context, c client.Reader, namespaces []string) (podAges, error) {
	ages := podAges{oldest: view.PodAges{}}
	for _, namespace := range namespaces {
		err := cmdutil.EachPage(ctx, c, func() *corev1.PodList { return &corev1.PodList{} }, func(page *corev1.PodList) {
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
