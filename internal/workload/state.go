// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// State is the state of a workload, as a restart needs it.
type State struct {
	Kind, Name string
	UID        types.UID
	// RestartedAt is the time of the last restart in the spec of the workload, and LastTick the
	// last tick that was sent, from an annotation.
	RestartedAt, LastTick string

	Deleting bool
	// Paused means that changes of the pod template are not rolled out.
	Paused bool
	// OnDelete means that changes of the pod template reach a pod only when the pod is deleted.
	OnDelete bool
	// Partitioned means that no pod of a StatefulSet is at or above its partition.
	Partitioned bool

	// Pods is the number of pods that the workload should have, and Updates the number of them
	// that a restart replaces.
	Pods, Updates int32
	// Excluded is the number of pods that a restart does not wait for, because their nodes are
	// not Ready. Stalled means that these pods keep the workload from replacing other pods.
	Excluded int32
	Stalled  bool
	// PerNode means that the workload runs a pod on each node. When a node ceases to be Ready,
	// the workload itself then gets no event.
	PerNode bool

	// Config lists the ConfigMaps and Secrets that its pods use, in the form that
	// podconfig.Parse reads.
	Config string

	// Selector selects the pods.
	Selector *metav1.LabelSelector
	// Rollout is the progress of the latest pod template and the latest restart.
	Rollout Progress
	// Availability is the progress regardless of the templates of the pods, for a workload that
	// is OnDelete.
	Availability Progress

	// Scaled means that only the scale subresource of the workload is known: it selects the
	// pods, but does not show whether they are ready.
	Scaled bool
}

// String returns the kind and the name.
func (s *State) String() string { return s.Kind + " " + s.Name }

// Progress is the progress of a rollout, as kubectl rollout status reports it.
type Progress struct {
	// Updating means that not all pods are new, or that old pods remain.
	Updating bool
	// Available means that the desired number of pods is available.
	Available bool
	// Exceeded means that the workload has exceeded its own progress deadline.
	Exceeded bool
	// Halted is the reason why the rollout does not continue by itself; its text does not
	// change while that lasts. It is empty for a rollout that continues, and for kinds without
	// such a state.
	Halted string
	// Message is the reason why the rollout is not complete; empty if it is.
	Message string
}

// Complete reports whether all pods are new and available.
func (p Progress) Complete() bool { return !p.Updating && p.Available }

// notObserved is the progress of a workload whose controller has not observed the
// latest change of its spec.
func notObserved() Progress {
	return Progress{Updating: true, Message: "its controller has not observed the latest change yet"}
}

// stateOf returns the part of the state that comes from the metadata.
func stateOf(kind string, o metav1.Object) *State {
	return &State{
		Kind: kind, Name: o.GetName(), UID: o.GetUID(),
		Deleting: o.GetDeletionTimestamp() != nil,
		LastTick: o.GetAnnotations()[tidekeeperv1.LastTickAnnotation],
	}
}

// desired returns the number of replicas of a workload, which defaults to 1.
func desired(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
