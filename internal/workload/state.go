// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// State is the part of a workload's state that a restart of the workload depends on.
type State struct {
	Kind, Name string
	UID        types.UID
	// RestartedAt is the time of the last restart, from the workload's spec. LastTick is the last
	// scheduled time for which a restart was started, from an annotation of the workload.
	RestartedAt, LastTick string

	Deleting bool
	// Paused means that changes to the pod template are not rolled out.
	Paused bool
	// OnDelete means that a pod is updated to a changed pod template only when a user deletes it.
	OnDelete bool
	// Partitioned means that the update strategy of a StatefulSet excludes all its pods from
	// updates, because the partition is at least the number of pods.
	Partitioned bool

	// Pods is the desired number of pods. Updates is the number of pods that a restart replaces.
	Pods, Updates int32
	// Excluded is the number of pods that a restart does not wait for because their nodes are not
	// Ready. Stalled means that the excluded pods prevent the workload's controller from replacing
	// other pods.
	Excluded int32
	Stalled  bool
	// PerNode means that the workload runs a pod on each node. The workload itself does not change
	// when any of its nodes stops being Ready, so no watch event of the workload shows this.
	PerNode bool

	// Config lists the ConfigMaps and Secrets that the pods use, in the encoding that
	// podconfig.Parse decodes.
	Config string

	// Selector is the label selector of the workload's pods.
	Selector *metav1.LabelSelector
	// Rollout is the progress of rolling out the latest pod template or the latest restart.
	Rollout Progress
	// Availability is the progress of the pods becoming available, regardless of their pod
	// template. It is set only if OnDelete is true.
	Availability Progress

	// Scaled means that the state was derived from the scale subresource, which has the pods'
	// selector but does not show whether the pods are ready.
	Scaled bool
}

// String returns the kind and the name of the workload.
func (s *State) String() string { return s.Kind + " " + s.Name }

// Progress is the progress of a rollout, by the rules of kubectl rollout status.
type Progress struct {
	// Updating means that some pods have not been updated yet, or that old pods remain.
	Updating bool
	// Available means that the desired number of pods is available.
	Available bool
	// Exceeded means that the workload has exceeded its own progress deadline.
	Exceeded bool
	// Halted is the reason why the rollout does not continue without a user's action. It is empty
	// for a rollout that continues, and for kinds whose rollouts cannot halt. It must not change
	// while the rollout is halted.
	Halted string
	// Message is the reason why the rollout is not complete. It is empty if the rollout is
	// complete.
	Message string
}

// Complete reports whether all pods have been updated and are available.
func (p Progress) Complete() bool { return !p.Updating && p.Available }

// notObserved returns the progress of a workload whose controller has not observed the latest
// change to the spec yet.
func notObserved() Progress {
	return Progress{Updating: true, Message: "its controller has not observed the latest change yet"}
}

// stateOf returns a State in which only the fields derived from the workload's metadata are set.
func stateOf(kind string, o metav1.Object) *State {
	return &State{
		Kind: kind, Name: o.GetName(), UID: o.GetUID(),
		Deleting: o.GetDeletionTimestamp() != nil,
		LastTick: o.GetAnnotations()[tidekeeperv1.LastTickAnnotation],
	}
}

// desired returns the desired number of replicas, which defaults to 1.
func desired(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
