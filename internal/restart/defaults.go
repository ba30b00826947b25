// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// defaultOwner is the field manager of a schedule that the manager has written.
const defaultOwner = "tidekeeper-default"

// defaults are the ScheduledRestarts that the default schedule was written for, by the version of
// their spec, so that each is tried once: the default is in force without that, too.
type defaults struct {
	mu    sync.Mutex
	tried map[types.NamespacedName]specVersion
}

type specVersion struct {
	uid        types.UID
	generation int64
}

func newDefaults() *defaults { return &defaults{tried: map[types.NamespacedName]specVersion{}} }

// first reports whether the default was not tried yet for a spec.
func (d *defaults) first(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) bool {
	is := specVersion{restart.UID, restart.Generation}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tried[key] == is {
		return false
	}
	d.tried[key] = is
	return true
}

func (d *defaults) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tried, key)
}

// writeDefault writes the default schedule into a spec that names nothing that triggers restarts,
// where kubectl get shows it, and where it stays when the age of pods or changes are asked for
// later. A write of the spec counts as an edit, so that it has to wait for the end of a restart, and
// for the end of failures, which an edit would forget.
func (r *reconciler) writeDefault(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) error {
	if restart.Spec.Schedule != "" || restart.Spec.GetSchedule() == "" ||
		restart.Status.Active != nil || restart.Status.ConsecutiveFailures > 0 || !r.defaults.first(key, restart) {
		return nil
	}
	after := restart.DeepCopy()
	after.Spec.Schedule = tidekeeperv1.DefaultSchedule
	patch := client.MergeFromWithOptions(restart, client.MergeFromWithOptimisticLock{})
	err := r.client.Patch(ctx, after, patch, client.FieldOwner(defaultOwner))
	switch {
	case err == nil:
		after.DeepCopyInto(restart)
		r.defaults.first(key, restart)
		r.recorder.Eventf(restart, nil, corev1.EventTypeNormal, tidekeeperv1.EventScheduleDefaulted, "Reconcile",
			"spec.schedule is now %q, the default, as there was neither a schedule nor maxPodAgeSeconds nor onConfigChange", tidekeeperv1.DefaultSchedule)
		return nil
	case isContentRejected(err) || apierrors.IsForbidden(err):
		ctrl.LoggerFrom(ctx).Info("The default schedule is in force, but could not be written into the spec", "error", err.Error())
		return nil
	default:
		r.defaults.forget(key)
		return fmt.Errorf("write the default schedule into the spec: %w", err)
	}
}
