// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Object is a Kubernetes object, as controller-runtime's client.Object is.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is the adapter for a kind of workload.
type Kind struct {
	schema.GroupVersionKind

	// Resource is the name of the kind in URLs and in rights, such as deployments.
	Resource string
	// ShortName is kubectl's short name for it, such as deploy.
	ShortName string

	// Optional means that the cluster need not serve the kind: its CRD may be installed and
	// removed while the manager runs.
	Optional bool

	// New returns an empty object of the kind.
	New func() Object

	// State returns the state of an object of the kind, as a restart needs it. An object of
	// another kind is an error.
	State func(Object) (*State, error)

	// Restart returns the merge patch that restarts the workload at a time.
	Restart func(at time.Time) map[string]any

	// Trim drops the fields of an object that no controller reads, before the cache stores it.
	// The metadata is not changed.
	Trim func(Object) error

	// MarksPods means that a restart changes the annotations of the pod template, so that each
	// new pod shows which restart created it.
	MarksPods bool

	// TemplateHashLabel is the label of pods with the last part of the name of their
	// ReplicaSet, after the name of the workload. It is empty for kinds that control their pods
	// themselves.
	TemplateHashLabel string

	// UndoHidesRestart means that an undo reverts the annotations of the workload together with
	// its pod template, so that only a ReplicaSet of the workload shows whether a restart was
	// rolled out.
	UndoHidesRestart bool

	// Exclude adapts the state of an object to nodes that are not Ready, since pods there can
	// neither be replaced nor become available. It is nil for kinds that do not run a pod on
	// each node.
	Exclude func(Object, *State, Absence) error
}

// APIVersion returns the apiVersion of objects of the kind.
func (k *Kind) APIVersion() string { return k.GroupVersion().String() }

// Is reports whether the names, for example from an owner reference, are the names of this
// kind.
func (k *Kind) Is(apiVersion, kind string) bool {
	return k.Kind == kind && k.APIVersion() == apiVersion
}

// Ref returns a reference to the workload of the kind with the given name. As in a manifest,
// the default apiVersion is omitted.
func (k *Kind) Ref(name string) tidekeeperv1.TargetRef {
	ref := tidekeeperv1.TargetRef{Kind: k.Kind, Name: name}
	if k.APIVersion() != tidekeeperv1.DefaultTargetAPIVersion {
		ref.APIVersion = k.APIVersion()
	}
	return ref
}

// typed turns a function of a concrete type into a function of objects.
func typed[T Object](f func(T)) func(Object) error {
	return func(o Object) error {
		t, ok := o.(T)
		if !ok {
			return fmt.Errorf("%T is not a %T", o, t)
		}
		f(t)
		return nil
	}
}

// state turns a function of a concrete type into [Kind.State].
func state[T Object](f func(T) *State) func(Object) (*State, error) {
	return func(o Object) (s *State, err error) {
		err = typed(func(t T) { s = f(t) })(o)
		return s, err
	}
}
