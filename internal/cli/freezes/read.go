// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freezes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// Read returns the periods of the Freezes that have not ended and apply to the given namespaces,
// keyed by namespace. If the user is not allowed to read Freezes or namespaces, `unknown` describes
// the Freezes that are missing from the result.
func Read(ctx context.Context, c client.Client, namespaces []string, now time.Time) (periods map[string][]period.Period, unknown string, err error) {
	list := &tidekeeperv1.FreezeList{}
	switch err := c.List(ctx, list); {
	case apierrors.IsForbidden(err):
		return nil, "you may not list Freezes: Freezes in force are not counted", nil
	case apierrors.IsNotFound(err): // There are no Freezes if the cluster lacks their CRD.
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("list freezes: %w", err)
	}
	selective := false
	for i := range list.Items {
		selective = selective || !period.AppliesToAllNamespaces(&list.Items[i])
	}
	periods = map[string][]period.Period{}
	for _, namespace := range namespaces {
		labels := map[string]string{corev1.LabelMetadataName: namespace}
		if selective {
			object := &corev1.Namespace{}
			switch err := c.Get(ctx, client.ObjectKey{Name: namespace}, object); {
			case err == nil:
				labels = object.Labels
			case apierrors.IsForbidden(err):
				unknown = "you may not read the labels of some namespaces: only Freezes that name these namespaces, or apply to all namespaces, are counted"
			case !apierrors.IsNotFound(err):
				return nil, "", fmt.Errorf("get the labels of the namespace %s: %w", namespace, err)
			}
		}
		if in := period.In(list.Items, labels, now); len(in) > 0 {
			periods[namespace] = in
		}
	}
	return periods, unknown, nil
}
