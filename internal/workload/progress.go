// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastProgress returns the time at which a workload's rollout in progress last made progress. If
// the workload's controller does not record this time, LastProgress returns the time of the last
// change of the workload, because the rollout cannot have begun earlier. The time is zero if no
// rollout is in progress, or if the time is unknown.
//
// limit is the time without progress after which the controller reports the rollout as stuck; 0 if
// it never does.
func LastProgress(o Object) (at time.Time, limit time.Duration) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return deploymentLastProgress(o)
	case *appsv1.StatefulSet:
		if s := statefulSetState(o); s.Rollout.Updating && !s.OnDelete {
			return ChangedAt(o), 0
		}
	}
	return time.Time{}, 0
}

// deploymentAvailable is the reason of the condition "Progressing" of a Deployment whose last
// rollout is complete, even if pods have since failed or been added.
const deploymentAvailable = "NewReplicaSetAvailable"

func deploymentLastProgress(d *appsv1.Deployment) (at time.Time, limit time.Duration) {
	if seconds := d.Spec.ProgressDeadlineSeconds; seconds != nil && *seconds != math.MaxInt32 { // The maximum means no limit.
		limit = time.Duration(*seconds) * time.Second
	}
	if d.Spec.Paused || deploymentProgress(d).Complete() {
		return time.Time{}, limit
	}
	if d.Generation > d.Status.ObservedGeneration || limit == 0 {
		return ChangedAt(d), limit
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason != deploymentAvailable {
			return c.LastUpdateTime.Time, limit
		}
	}
	return time.Time{}, limit
}

// ChangedAt returns the time of the last change of an object, in whole seconds. It ignores changes
// of subresources such as status and scale.
func ChangedAt(o metav1.Object) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}
