// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// State is what a restart needs to know about a workload.
type State struct {
	Kind, Name string
	UID        types.UID
	// RestartedAt is the time of the last restart, as the spec of the workload has
	// it, and LastTick the last tick that was sent, as an annotation has it.
	RestartedAt, LastTick string

	Deleting bool
	// Paused says that changes of the pod template are not rolled out.
	Paused bool
	// OnDelete says that changes of the pod template reach a pod only when it is
	// deleted.
	OnDelete bool
	// Partitioned says that no pod of a StatefulSet is above its partition.
	Partitioned bool

	// Pods is the number of pods that the workload should have, and Updates the number
	// of those that a restart replaces.
	Pods, Updates int32
	// Excluded is the number of pods that a restart does not wait for, as their nodes
	// are not ready. Stalled says that they keep the workload from replacing others.
	Excluded int32
	Stalled  bool
	// PerNode says that the workload runs one pod on each node. That a node is no
	// longer ready is then no event of the workload.
	PerNode bool

	// Config is what its pods use of ConfigMaps and Secrets, as podconfig.Parse reads it.
	Config string

	// Selector selects the pods.
	Selector *metav1.LabelSelector
	// Rollout is the progress of the latest pod template and the latest restart.
	Rollout Progress
	// Availability is the same without regard to which template a pod has, for a workload
	// that is OnDelete.
	Availability Progress

	// Scaled says that only the scale subresource of the workload is known: it selects its
	// pods, and does not say whether they are ready.
	Scaled bool
}

// String returns the kind and the name.
func (s *State) String() string { return s.Kind + " " + s.Name }

// Progress is the progress of a rollout, as kubectl rollout status reports it.
type Progress struct {
	// Updating says that not all pods are new, or that old ones remain.
	Updating bool
	// Available says that as many pods as there should be are available.
	Available bool
	// Exceeded says that the workload has exceeded its own progress deadline.
	Exceeded bool
	// Halted says why the rollout does not go on by itself, in words that stay the same as long
	// as that lasts. It is empty for one that goes on, and for kinds that do not say.
	Halted string
	// Message says what the rollout waits for, unless it is complete.
	Message string
}

// Complete reports whether all pods are new and available.
func (p Progress) Complete() bool { return !p.Updating && p.Available }

// notObserved is the progress of a workload whose controller has not observed the
// latest change of its spec.
func notObserved() Progress {
	return Progress{Updating: true, Message: "its controller has not observed the latest change yet"}
}

// stateOf returns the part of the state that is in the metadata.
func stateOf(kind string, o metav1.Object) *State {
	return &State{
		Kind: kind, Name: o.GetName(), UID: o.GetUID(),
		Deleting: o.GetDeletionTimestamp() != nil,
		LastTick: o.GetAnnotations()[tidekeeperv1.LastTickAnnotation],
	}
}

// desired returns the number of replicas of a workload. The default is one.
func desired(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
