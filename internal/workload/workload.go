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

// Object is a Kubernetes object. It is equivalent to controller-runtime's client.Object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is the adapter for a kind of workload. It holds the kind's names, and the functions that
// differ between kinds.
type Kind struct {
	schema.GroupVersionKind

	// Resource is the plural name of the kind in URLs and RBAC rules, such as "deployments".
	Resource string
	// ShortName is kubectl's short name for the kind, such as "deploy".
	ShortName string

	// Optional means that a cluster need not serve the kind: its CRD can be installed and removed
	// while the manager runs.
	Optional bool

	// New returns an empty object of the kind.
	New func() Object

	// State returns the state of an object of the kind. It returns an error for an object of
	// another kind.
	State func(Object) (*State, error)

	// Restart returns the merge patch that restarts the workload at the given time.
	Restart func(at time.Time) map[string]any

	// Trim removes the fields that no controller reads from an object before the cache stores it.
	// The metadata is not changed.
	Trim func(Object) error

	// MarksPods means that a restart changes the annotations of the pod template, so that every new
	// pod shows which restart created it.
	MarksPods bool

	// TemplateHashLabel is the pod label with the hash of the pod template. The name of the pod's
	// ReplicaSet consists of the workload's name and this hash. TemplateHashLabel is empty for
	// kinds that control their pods directly.
	TemplateHashLabel string

	// UndoHidesRestart means that an undo reverts the workload's annotations together with its pod
	// template. In that case, only the workload's ReplicaSets show whether a restart was rolled
	// out.
	UndoHidesRestart bool

	// Exclude adapts an object's state to nodes that are not Ready, because pods on such nodes can
	// neither be replaced nor become available. It is nil for kinds that do not run a pod on each
	// node.
	Exclude func(Object, *State, Absence) error
}

// APIVersion returns the apiVersion of the kind's objects.
func (k *Kind) APIVersion() string { return k.GroupVersion().String() }

// Is reports whether the given names, for example from an owner reference, identify this kind.
func (k *Kind) Is(apiVersion, kind string) bool {
	return k.Kind == kind && k.APIVersion() == apiVersion
}

// Ref returns a target reference to the named workload of this kind. It omits the apiVersion if it
// is the default.
func (k *Kind) Ref(name string) tidekeeperv1.TargetRef {
	ref := tidekeeperv1.TargetRef{Kind: k.Kind, Name: name}
	if k.APIVersion() != tidekeeperv1.DefaultTargetAPIVersion {
		ref.APIVersion = k.APIVersion()
	}
	return ref
}

// typed converts a function on a concrete object type into a function on any [Object]. The new
// function returns an error for an object of another type.
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

// state converts a function on a concrete object type into a function for [Kind.State].
func state[T Object](f func(T) *State) func(Object) (*State, error) {
	return func(o Object) (s *State, err error) {
		err = typed(func(t T) { s = f(t) })(o)
		return s, err
	}
}
