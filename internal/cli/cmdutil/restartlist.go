// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/pages"
)

// restartPage is the page size for lists of complete ScheduledRestarts. It is small, because
// tenants may create objects of up to 1.5 MB, the limit of etcd.
const restartPage = 100

// longestAnnotation is the maximum number of bytes to keep of an annotation's value. All valid
// values of the annotations in shownAnnotations are shorter.
const longestAnnotation = 1024

// shownAnnotations lists the annotations that KeepRestart keeps, because the manager uses them.
var shownAnnotations = []string{tidekeeperv1.RestartNowAnnotation, tidekeeperv1.AppliedAnnotation}

// EachRestart reads ScheduledRestarts page by page, reduces each with [KeepRestart], and passes it
// to read. It returns the list's resourceVersion.
func EachRestart(ctx context.Context, c client.Reader, read func(*tidekeeperv1.ScheduledRestart), options ...client.ListOption) (version string, err error) {
	empty := func() *tidekeeperv1.ScheduledRestartList { return &tidekeeperv1.ScheduledRestartList{} }
	err = pages.Each(ctx, c, empty, func(page *tidekeeperv1.ScheduledRestartList) {
		if version == "" {
			version = page.ResourceVersion
		}
		for i := range page.Items {
			KeepRestart(&page.Items[i])
			read(page.Items[i].DeepCopy()) // A reference to the item would keep the whole page in memory.
		}
	}, append([]client.ListOption{client.Limit(restartPage)}, options...)...)
	return version, err
}

// KeepRestart drops the ScheduledRestart fields that no command or dashboard page shows and that
// tenants can make arbitrarily large. A reduced object must not be written back.
func KeepRestart(r *tidekeeperv1.ScheduledRestart) {
	kept := map[string]string{}
	for _, key := range shownAnnotations {
		if value, ok := r.Annotations[key]; ok {
			kept[key] = strings.Clone(value[:min(len(value), longestAnnotation)])
		}
	}
	if len(kept) == 0 {
		kept = nil
	}
	owner := metav1.GetControllerOf(r)
	r.ManagedFields, r.Labels, r.Finalizers, r.Annotations, r.OwnerReferences = nil, nil, nil, kept, nil
	if owner != nil {
		r.OwnerReferences = []metav1.OwnerReference{*owner}
	}
}
