// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// manyClaims is the number of claims in a namespace (ticks that were written to the status before
// they were due) from which on a shared list of its ScheduledRestarts replaces reads of single
// objects.
const manyClaims = 16

// listPage is the page size of a list of ScheduledRestarts. listTimeout is the time limit for all
// of its pages.
const (
	listPage    = 1000
	listTimeout = 20 * time.Second
)

// specOf holds the fields of a ScheduledRestart that show whether users have edited it between two
// reads.
type specOf struct {
	uid        types.UID
	generation int64
	request    string
	deleting   bool
}

// comparedRequest is the length of the compared prefix of the annotation restart-now. It is longer
// than a timestamp, but shorter than the prefix that the cache keeps, so that the truncation in the
// cache does not count as a difference.
const comparedRequest = 64

func specOfObject(o metav1.Object) specOf {
	request := text.Cut(o.GetAnnotations()[tidekeeperv1.RestartNowAnnotation], comparedRequest)
	return specOf{o.GetUID(), o.GetGeneration(), request, o.GetDeletionTimestamp() != nil}
}

// specList is a list of a namespace's ScheduledRestarts that is shared by their reconciles.
type specList struct {
	begun time.Time
	// done is closed after objects and err have been set. objects is keyed by the names of the
	// ScheduledRestarts.
	done    chan struct{}
	objects map[string]specOf
	err     error
}

func newSpecList(now time.Time) *specList { return &specList{begun: now, done: make(chan struct{})} }

// sender sends ticks to their targets: it patches a target with the tick (the scheduled time) of
// its restart.
type sender struct {
	client    client.Client
	apiReader client.Reader
	claims    *claims
	clock     clock.PassiveClock
}

// send patches the target for a tick, the scheduled time of a restart. The patch applies only to
// the version of the workload on which the decision was based, since the workload may have been
// broken, paused or replaced since then.
func (s *sender) send(ctx context.Context, t *target, tick time.Time, trigger tidekeeperv1.Trigger) error {
	content := t.kind.Restart(tick)
	content["metadata"] = map[string]any{
		"uid": t.object.GetUID(), "resourceVersion": t.object.GetResourceVersion(),
		"annotations": map[string]any{tidekeeperv1.LastTickAnnotation: workload.FormatTime(tick)},
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the patch of %s %s: %w", t.kind.Kind, t.object.GetName(), err)
	}
	if err := s.client.Patch(ctx, t.object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("patch %s %s: %w", t.kind.Kind, t.object.GetName(), err)
	}
	ctrl.LoggerFrom(ctx).Info("Sent a tick", "target", klog.KObj(t.object), "kind", t.kind.Kind, "tick", workload.FormatTime(tick), "trigger", trigger)
	return nil
}

// recheck returns a conflict if the ScheduledRestart on the API server differs from the version on
// which the decision was based. A tick that was claimed before it was due is sent without a status
// write. Without recheck, no conflict would reveal an edit that the watch has not delivered yet,
// for example that the schedule was suspended. If many ticks of the namespace are due, recheck
// usually reads a shared list, which is requested after the restart became due.
func (s *sender) recheck(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) error {
	decided := specOfObject(restart)
	if listed, ok := s.listedSpec(ctx, key, restart.Status.Active.StartedTime.Time); ok && listed == decided {
		return nil
	}
	// The list may be older than the version on which the decision was based, for example if a
	// restart was requested after the list was read. Read the object itself to be sure.
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind("ScheduledRestart"))
	if err := s.apiReader.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read whether the schedule has changed since its tick was claimed: %w", err)
	}
	if specOfObject(live) != decided {
		return apierrors.NewConflict(schema.GroupResource{Group: tidekeeperv1.GroupName, Resource: "scheduledrestarts"}, restart.Name,
			errors.New("it has changed since its tick was claimed"))
	}
	return nil
}

// listedSpec returns the compared fields of a ScheduledRestart from a list that was read after its
// restart became due. It returns false unless many ScheduledRestarts of the namespace are due.
func (s *sender) listedSpec(ctx context.Context, key types.NamespacedName, due time.Time) (specOf, bool) {
	list, isNew := s.claims.listSince(key.Namespace, due, s.clock.Now())
	if list == nil {
		return specOf{}, false
	}
	if isNew {
		// Other reconciles wait for the list, so it must be filled even if this reconcile is
		// cancelled.
		s.fill(context.WithoutCancel(ctx), key.Namespace, list)
	}
	select {
	case <-ctx.Done():
		return specOf{}, false
	case <-list.done:
		spec, ok := list.objects[key.Name]
		return spec, ok && list.err == nil
	}
}

// fill lists the ScheduledRestarts of a namespace, stores the result in the given list, and closes
// list.done.
func (s *sender) fill(ctx context.Context, namespace string, list *specList) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	defer close(list.done)
	list.objects = map[string]specOf{}
	for token := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind("ScheduledRestartList"))
		if list.err = s.apiReader.List(ctx, page, client.InNamespace(namespace), client.Limit(listPage), client.Continue(token)); list.err != nil {
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
