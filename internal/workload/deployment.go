// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

// Deployment is the adapter for the kind Deployment of the API group apps.
var Deployment = &Kind{
	GroupVersionKind: apps("Deployment"),
	Resource:         "deployments",
	ShortName:        "deploy",
	New:              func() Object { return &appsv1.Deployment{} },
	State:            state(deploymentState),
	Restart:          restartTemplate,
	Trim: typed(func(d *appsv1.Deployment) {
		trimTemplate(&d.Spec.Template)
		d.Spec.Selector = boundSelector(d.Spec.Selector)
		d.Status.Conditions = keepProgress(d.Status.Conditions)
	}),
	MarksPods:         true,
	TemplateHashLabel: appsv1.DefaultDeploymentUniqueLabelKey,
	UndoHidesRestart:  true,
}

func deploymentState(d *appsv1.Deployment) *State {
	s := stateOf("Deployment", d)
	s.RestartedAt = restartedAt(&d.Spec.Template)
	s.Config = config(&d.Spec.Template)
	s.Selector = d.Spec.Selector
	s.Paused = d.Spec.Paused
	s.Pods = desired(d.Spec.Replicas)
	s.Updates = s.Pods
	s.Rollout = deploymentProgress(d)
	return s
}

// deploymentExceeded is the reason of the condition "Progressing" of a Deployment that has exceeded
// its progress deadline.
const deploymentExceeded = "ProgressDeadlineExceeded"

// deploymentProgress returns the progress of a Deployment by the rules of kubectl rollout status
// (k8s.io/kubectl, pkg/polymorphichelpers/rollout_status.go). The other kinds of the API group apps
// follow the same source.
func deploymentProgress(d *appsv1.Deployment) Progress {
	if d.Generation > d.Status.ObservedGeneration {
		return notObserved()
	}
	p := Progress{}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == deploymentExceeded {
			p.Exceeded = true
		}
	}
	switch s := &d.Status; {
	case s.UpdatedReplicas < desired(d.Spec.Replicas):
		p.Updating, p.Message = true, fmt.Sprintf("%d of %d pods are updated", s.UpdatedReplicas, desired(d.Spec.Replicas))
	case s.Replicas > s.UpdatedReplicas:
		p.Updating, p.Message = true, fmt.Sprintf("%d old pods remain", s.Replicas-s.UpdatedReplicas)
	case s.AvailableReplicas < s.UpdatedReplicas:
		p.Message = fmt.Sprintf("%d of %d pods are available", s.AvailableReplicas, s.UpdatedReplicas)
	default:
		p.Available = true
	}
	return p
}
