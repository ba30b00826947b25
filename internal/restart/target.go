// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// target is a workload as far as a restart has to know it.
type target struct {
	kind, name string
	uid        types.UID
	// restartedAt is what the pod template says about its last restart,
	// lastTick what the workload itself says about the last tick sent to it.
	restartedAt, lastTick string

	deleting bool
	// paused: changes of the template are not rolled out.
	paused bool
	// onDelete: changes of the template reach a pod only when it is deleted.
	onDelete bool

	// pods is how many pods it should have, selector which are its.
	pods     int32
	selector *metav1.LabelSelector
	// rollout says how far the template as it is now has reached its pods.
	rollout rollout
}

// rollout is how kubectl rollout status sees a workload.
type rollout struct {
	// updating: not all pods are of the latest template, or old ones remain.
	updating bool
	// available: as many pods as there should be are available.
	available bool
	// exceeded: the Deployment's own progressDeadlineSeconds has passed.
	exceeded bool
	// message says what it waits for, if it is not complete.
	message string
}

func (r rollout) complete() bool { return !r.updating && r.available }

// targetOf reads a workload.
func targetOf(o client.Object) *target {
	t := &target{name: o.GetName(), uid: o.GetUID(), deleting: o.GetDeletionTimestamp() != nil}
	var template *corev1.PodTemplateSpec
	switch o := o.(type) {
	case *appsv1.Deployment:
		t.kind, t.selector, template = KindDeployment, o.Spec.Selector, &o.Spec.Template
		t.paused = o.Spec.Paused
		t.pods = wanted(o.Spec.Replicas)
		t.rollout = deploymentRollout(o)
	case *appsv1.StatefulSet:
		t.kind, t.selector, template = KindStatefulSet, o.Spec.Selector, &o.Spec.Template
		t.onDelete = o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
		t.pods = wanted(o.Spec.Replicas)
		t.rollout = statefulSetRollout(o)
	case *appsv1.DaemonSet:
		t.kind, t.selector, template = KindDaemonSet, o.Spec.Selector, &o.Spec.Template
		t.onDelete = o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
		t.pods = o.Status.DesiredNumberScheduled
		t.rollout = daemonSetRollout(o)
	}
	t.lastTick = o.GetAnnotations()[tidekeeperv1.LastTickAnnotation]
	t.restartedAt = template.Annotations[tidekeeperv1.RestartedAtAnnotation]
	return t
}

func (t *target) String() string { return t.kind + " " + t.name }

// restartedFor returns when the template was restarted, if that was for the
// tick or later.
func (t *target) restartedFor(tick, now time.Time) (at time.Time, ok bool) {
	return notBefore(tick, t.restartedAt, now)
}

// sentFor tells whether the tick or a later one was sent to the workload, even
// if somebody has set the template back since.
func (t *target) sentFor(tick, now time.Time) bool {
	_, ok := notBefore(tick, t.lastTick, now)
	return ok
}

// notBefore reads a time that somebody wrote, and tells whether it is the tick
// or later. It counts only if it is not in the future: anything else was not
// written by a restart that has happened.
func notBefore(tick time.Time, text string, now time.Time) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Before(tick) || at.After(now) && !at.Equal(tick) {
		return time.Time{}, false
	}
	return at, true
}

// wanted is the number of replicas of a workload; the API's default is one.
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// The rules are those of kubectl rollout status: k8s.io/kubectl,
// pkg/polymorphichelpers/rollout_status.go.

func deploymentRollout(d *appsv1.Deployment) rollout {
	if d.Generation > d.Status.ObservedGeneration {
		return rollout{updating: true, message: "its latest change has not been seen yet"}
	}
	r := rollout{}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			r.exceeded = true
		}
	}
	switch s := &d.Status; {
	case s.UpdatedReplicas < wanted(d.Spec.Replicas):
		r.updating, r.message = true, fmt.Sprintf("%d of %d pods are updated", s.UpdatedReplicas, wanted(d.Spec.Replicas))
	case s.Replicas > s.UpdatedReplicas:
		r.updating, r.message = true, fmt.Sprintf("%d old pods are still there", s.Replicas-s.UpdatedReplicas)
	case s.AvailableReplicas < s.UpdatedReplicas:
		r.message = fmt.Sprintf("%d of %d pods are available", s.AvailableReplicas, s.UpdatedReplicas)
	default:
		r.available = true
	}
	return r
}

func statefulSetRollout(s *appsv1.StatefulSet) rollout {
	if s.Status.ObservedGeneration == 0 || s.Generation > s.Status.ObservedGeneration {
		return rollout{updating: true, message: "its latest change has not been seen yet"}
	}
	replicas := wanted(s.Spec.Replicas)
	r := rollout{available: s.Status.ReadyReplicas >= replicas}
	if !r.available {
		r.message = fmt.Sprintf("%d of %d pods are ready", s.Status.ReadyReplicas, replicas)
	}
	// Below the partition, pods keep the old template on purpose.
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil && *rolling.Partition > 0 {
		if update := replicas - *rolling.Partition; s.Status.UpdatedReplicas < update {
			r.updating, r.message = true, fmt.Sprintf("%d of %d pods are updated", s.Status.UpdatedReplicas, update)
		}
		return r
	}
	if s.Status.UpdateRevision != s.Status.CurrentRevision {
		r.updating, r.message = true, fmt.Sprintf("%d of %d pods are updated", s.Status.UpdatedReplicas, replicas)
	}
	return r
}

func daemonSetRollout(d *appsv1.DaemonSet) rollout {
	if d.Generation > d.Status.ObservedGeneration {
		return rollout{updating: true, message: "its latest change has not been seen yet"}
	}
	switch s := &d.Status; {
	case s.UpdatedNumberScheduled < s.DesiredNumberScheduled:
		return rollout{updating: true, message: fmt.Sprintf("%d of %d pods are updated", s.UpdatedNumberScheduled, s.DesiredNumberScheduled)}
	case s.NumberAvailable < s.DesiredNumberScheduled:
		return rollout{message: fmt.Sprintf("%d of %d pods are available", s.NumberAvailable, s.DesiredNumberScheduled)}
	default:
		return rollout{available: true}
	}
}
