// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// manyClaims is how many claims a namespace must have for its ScheduledRestarts to be listed when
// they are due, in place of one read for each.
const manyClaims = 16

// listPage is how many objects are read at a time, and listTimeout bounds all of it.
const (
	listPage    = 1000
	listTimeout = 20 * time.Second
)

// specOf is what the API server has of a ScheduledRestart that a decision depends on.
type specOf struct {
	uid        types.UID
	generation int64
	request    string
	deleting   bool
}

func specOfObject(o metav1.Object) specOf {
	return specOf{o.GetUID(), o.GetGeneration(), o.GetAnnotations()[tidekeeperv1.RestartNowAnnotation], o.GetDeletionTimestamp() != nil}
}

// specList is a list of the ScheduledRestarts of a namespace.
type specList struct {
	begun time.Time
	// done is closed when the rest is filled in.
	done    chan struct{}
	objects map[string]specOf
	err     error
}

func newSpecList(now time.Time) *specList { return &specList{begun: now, done: make(chan struct{})} }

// recheck returns a conflict if the ScheduledRestart is no longer as the decision saw it, or was
// not when its restart was due. A tick that was claimed earlier is sent without a write of the
// status, which would notice what a watch event that is late does not show: that the schedule
// was suspended, for example.
func (r *reconciler) recheck(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) error {
	decided := specOfObject(restart)
	if listed, ok := r.listedSpec(ctx, key, restart.Status.Active.StartedTime.Time); ok && listed == decided {
		return nil
	}
	// The list does not show what has changed since it was read, for example that a restart
	// was requested.
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind("ScheduledRestart"))
	if err := r.apiReader.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read whether the schedule has changed since its tick was claimed: %w", err)
	}
	if specOfObject(live) != decided {
		return apierrors.NewConflict(schema.GroupResource{Group: tidekeeperv1.GroupName, Resource: "scheduledrestarts"}, restart.Name,
			errors.New("it has changed since its tick was claimed"))
	}
	return nil
}

// listedSpec returns what the API server had of a ScheduledRestart at some time since its restart
// was due, if many of its namespace are due and could be listed.
func (r *reconciler) listedSpec(ctx context.Context, key types.NamespacedName, due time.Time) (specOf, bool) {
	list, isNew := r.claims.listSince(key.Namespace, due, r.clock.Now())
	if list == nil {
		return specOf{}, false
	}
	if isNew {
		// Others wait for it, whatever becomes of this reconcile.
		r.fill(context.WithoutCancel(ctx), key.Namespace, list)
	}
	select {
	case <-ctx.Done():
		return specOf{}, false
	case <-list.done:
		spec, ok := list.objects[key.Name]
		return spec, ok && list.err == nil
	}
}

// fill reads the ScheduledRestarts of a namespace into a list.
func (r *reconciler) fill(ctx context.Context, namespace string, list *specList) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	defer close(list.done)
	list.objects = map[string]specOf{}
	for token := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind("ScheduledRestartList"))
		if list.err = r.apiReader.List(ctx, page, client.InNamespace(namespace), client.Limit(listPage), client.Continue(token)); list.err != nil {
			return
		}
		for i := range page.Items {
			list.objects[page.Items[i].Name] = specOfObject(&page.Items[i])
		}
		if token = page.Continue; token == "" {
			return
		}
	}
}
