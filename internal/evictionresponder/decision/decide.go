// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides how the manager responds to an Eviction of the API group
// lifecycle.k8s.io: whether the pod is moved by a restart of its Deployment. It also decides what
// the restart waits for, and when the next responder takes over. The package has no client, clock
// or logger.
package decision

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

const (
	// rollingFor is the maximum time for which a rollout by another client delays the restart. It
	// equals the default of the field startingDeadlineSeconds, which limits all other delays of a
	// restart.
	rollingFor = 15 * time.Minute
	// rollingLook is the interval at which the state of a rollout by another client is read.
	rollingLook = 10 * time.Second
)

// Input holds the facts about an Eviction from which [Decide] determines the next step.
type Input struct {
	Now      time.Time
	Eviction *lifecyclev1alpha1.Eviction
	// Pod is the pod to evict; nil if it is gone. If Restart has ended, Pod was read from the API
	// server after the end of the restart.
	Pod *corev1.Pod
	// Deployment is the Deployment to which the pod belongs; nil if there is none.
	Deployment *appsv1.Deployment
	// Budgets lists the PodDisruptionBudgets of the namespace.
	Budgets []policyv1.PodDisruptionBudget
	// Leaving is the number of other ready pods of the Deployment that are being evicted.
	Leaving int32
	// Restart is the restart of the Deployment that was requested since the responder's start time,
	// or an earlier restart in progress that also replaces Pod. It is nil if there is neither.
	Restart *rescue.Restart
	// Restarts is true if the manager runs the controller "scheduled-restart", which restarts
	// workloads, and that controller serves the namespace.
	Restarts bool
}

// Outcome is the reason for which the manager completes its part of an Eviction.
type Outcome string

// Outcomes of the manager's part of an Eviction.
const (
	// Gone means that the pod to evict no longer exists, usually because a restart has replaced it.
	Gone Outcome = "Gone"
	// Declined means that the next responder evicts the pod, because the manager does not restart
	// the pod's Deployment.
	Declined Outcome = "Declined"
	// Failed means that the next responder evicts the pod, because the restart of the pod's
	// Deployment has failed.
	Failed Outcome = "Failed"
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{Gone, Declined, Failed}

// Step is the manager's next step as the responder of an Eviction.
type Step struct {
	// Status is the responder's new entry in status.responders, or nil if no entry has to be
	// written.
	Status *lifecyclev1alpha1.ResponderStatus
	// Restart is true if a restart of the Deployment is requested once Status is written.
	Restart bool
	// Outcome is the outcome if Status completes the responder's part of the Eviction, and empty
	// otherwise.
	Outcome Outcome
	// Wake is the time at which to decide again, unless an event causes an earlier decision. The
	// zero time means that only an event causes another decision.
	Wake time.Time
}

// Entry returns the manager's entry in status.responders of an Eviction of a pod. It returns nil
// unless the manager is the active responder and has not completed its part of the Eviction. API
// servers reject changes of any other entry.
func Entry(e *lifecyclev1alpha1.Eviction) *lifecyclev1alpha1.ResponderStatus {
	active := slices.ContainsFunc(e.Status.TargetResponders, func(r lifecyclev1alpha1.TargetResponder) bool {
		return r.Name == tidekeeperv1.EvictionResponder && r.State == lifecyclev1alpha1.ResponderStateActive
	})
	i := slices.IndexFunc(e.Status.Responders, func(r lifecyclev1alpha1.ResponderStatus) bool { return r.Name == tidekeeperv1.EvictionResponder })
	if !active || i < 0 || e.Spec.Target.Pod == nil {
		return nil
	}
	if entry := &e.Status.Responders[i]; entry.StartTime != nil && entry.CompletionTime == nil {
		return entry
	}
	return nil
}

// InProgress reports whether the eviction has neither succeeded nor failed nor been canceled.
func InProgress(e *lifecyclev1alpha1.Eviction) bool {
	return !meta.IsStatusConditionTrue(e.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionFailed)) &&
		!meta.IsStatusConditionTrue(e.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted))
}

// Decide determines the manager's next step as the responder of an Eviction.
func Decide(in Input) Step {
	entry := Entry(in.Eviction)
	if entry == nil {
		return Step{}
	}
	d := decider{Input: in, entry: entry}
	switch pod := in.Pod; {
	case pod == nil || pod.UID != in.Eviction.Spec.Target.Pod.UID || pods.IsTerminal(pod):
		return d.complete(Gone, "the pod is gone")
	case !pod.DeletionTimestamp.IsZero():
		return d.wait("the pod is being deleted")
	case in.Deployment == nil:
		return d.complete(Declined, "the pod belongs to no Deployment, so that no restart moves it")
	case in.Restart != nil && in.Restart.InProgress():
		return d.wait(d.waiting())
	case in.Restart != nil && !in.Restart.Spares(pod):
		return d.ended()
	default:
		return d.begin()
	}
}

// decider determines the next step for an Eviction whose active responder is the manager.
type decider struct {
	Input
	entry *lifecyclev1alpha1.ResponderStatus
}

// waiting returns the message for the responder's status while a restart is requested or in
// progress.
func (d *decider) waiting() string {
	text := fmt.Sprintf("a restart of Deployment %s moves the pod", d.Deployment.Name)
	if d.Restart != nil && d.Restart.Message != "" {
		text += "; it waits: " + d.Restart.Message
	}
	return text
}

// ended returns the step after a restart that has ended without removing the pod. The step waits
// for a rollout by another client, if any, because the rollout may remove the pod.
func (d *decider) ended() Step {
	if rescue.IsRolling(d.Deployment) {
		return d.rolling()
	}
	if d.Restart.State == rescue.Succeeded {
		return d.complete(Failed, fmt.Sprintf("Deployment %s was restarted, and still has the pod", d.Deployment.Name))
	}
	return d.complete(Failed, fmt.Sprintf("Deployment %s could not be restarted: %s", d.Deployment.Name, d.Restart.Message))
}

// begin decides whether to request a restart of the Deployment, which moves the pod.
func (d *decider) begin() Step {
	if !pods.IsConditionTrue(d.Pod, corev1.PodReady) {
		return d.complete(Declined, "the pod is not ready, so that its eviction takes nothing down")
	}
	if why := rescue.WhyEvicted(d.Deployment, drain.NewWorld(d.Budgets, drain.Volumes{}).NeverAllows(d.Pod), 1+d.Leaving); why != "" {
		return d.complete(Declined, fmt.Sprintf("Deployment %s is not restarted: %s", d.Deployment.Name, why))
	}
	switch {
	case !d.Restarts:
		return d.complete(Declined, "this manager does not run the controller scheduled-restart, or not for this namespace")
	case rescue.IsRolling(d.Deployment):
		return d.rolling()
	}
	step := d.wait(d.waiting())
	step.Restart = true
	if step.Status == nil {
		// The status is written even if it has not changed, because the write fails if the Eviction
		// has changed since it was read. A canceled Eviction must not cause a restart.
		step.Status = d.entry.DeepCopy()
	}
	return step
}

// rolling returns the step during a rollout by another client. The step waits for the end of the
// rollout. When rollingFor has passed since the responder's start time, the step is the outcome
// Failed instead.
func (d *decider) rolling() Step {
	if d.Now.Sub(d.entry.StartTime.Time) >= rollingFor {
		return d.complete(Failed, fmt.Sprintf("Deployment %s has been rolling out for too long to be restarted", d.Deployment.Name))
	}
	step := d.wait(fmt.Sprintf("Deployment %s is rolling out", d.Deployment.Name))
	if look := d.Now.Add(rollingLook); look.Before(step.Wake) {
		step.Wake = look
	}
	return step
}
