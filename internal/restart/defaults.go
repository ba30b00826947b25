// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// defaultOwner is the field manager that owns default schedules in spec.schedule.
const defaultOwner = "tidekeeper-default"

// Bounds of the delay before a rejected write of a default schedule is retried. The delay doubles
// after each rejection. It may be long, since the default is in force even if it is not written.
// Users who may edit the object could otherwise cause many rejected writes.
const (
	firstDefaultDelay = time.Second
	lastDefaultDelay  = time.Hour
)

// defaults writes default schedules, and limits the rate of rejected writes for each
// ScheduledRestart.
type defaults struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	memories *memories
}

// refusedDefault holds the number of consecutive rejections of a default schedule, and the time of
// the next attempt to write it.
type refusedDefault struct {
	times int
	again time.Time
}

// until returns the time before which a default schedule that the API server rejected is not
// written again; zero if no write of the default schedule was rejected.
func (d *defaults) until(key types.NamespacedName) (again time.Time) {
	d.memories.with(key, func(m *memory) {
		if m.defaults != nil {
			again = m.defaults.again
		}
	})
	return again
}

// refused records that the API server rejected the default schedule of a ScheduledRestart, and
// returns the time of the next attempt.
func (d *defaults) refused(key types.NamespacedName, now time.Time) (again time.Time) {
	d.memories.with(key, func(m *memory) {
		times := 0
		if m.defaults != nil {
			times = m.defaults.times
		}
		again = now.Add(min(firstDefaultDelay<<min(times, 20), lastDefaultDelay))
		m.defaults = &refusedDefault{times + 1, again}
	})
	return again
}

func (d *defaults) forget(key types.NamespacedName) {
	d.memories.with(key, func(m *memory) { m.defaults = nil })
}

// write writes the default schedule into a spec without any trigger, so that kubectl get shows the
// schedule, and so that it remains when maxPodAgeSeconds or onConfigChange is set later. The write
// counts as an edit of the spec, which would reset the number of consecutive failures. It is
// therefore made only while that number is 0 and no restart is in progress. If the API server
// rejects the write, write returns the time of the next attempt.
func (d *defaults) write(ctx context.Context, key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (again time.Time, err error) {
	if restart.Spec.Schedule != "" || restart.Spec.GetSchedule() == "" || restart.Status.Active != nil || restart.Status.ConsecutiveFailures > 0 {
		return time.Time{}, nil
	}
	if until := d.until(key); until.After(d.clock.Now()) {
		return until, nil
	}
	after := restart.DeepCopy()
	after.Spec.Schedule = tidekeeperv1.DefaultSchedule
	patch := client.MergeFromWithOptions(restart, client.MergeFromWithOptimisticLock{})
	err = d.client.Patch(ctx, after, patch, client.FieldOwner(defaultOwner))
	switch {
	case err == nil:
		after.DeepCopyInto(restart)
		d.forget(key)
		d.recorder.Eventf(restart, nil, corev1.EventTypeNormal, tidekeeperv1.EventScheduleDefaulted, "Reconcile",
			"spec.schedule is now %q, the default, as there was neither a schedule nor maxPodAgeSeconds nor onConfigChange", tidekeeperv1.DefaultSchedule)
		return time.Time{}, nil
	case isContentRejected(err) || apierrors.IsForbidden(err):
		ctrl.LoggerFrom(ctx).Info("The default schedule is in force, but could not be written into the spec", "error", err.Error())
		return d.refused(key, d.clock.Now()), nil
	default:
		return time.Time{}, fmt.Errorf("write the default schedule into the spec: %w", err)
	}
}
