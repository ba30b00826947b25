// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// RuntimeClassAction is the action needed to reconcile a pool's RuntimeClass.
type RuntimeClassAction int

// Possible results of [DecideRuntimeClass].
const (
	RuntimeClassUpToDate RuntimeClassAction = iota // nothing to do
	RuntimeClassCreate                             // the RuntimeClass does not exist
	RuntimeClassUpdate                             // its scheduling differs
	RuntimeClassReplace                            // the handler, which is immutable, differs
	RuntimeClassDelete                             // the pool's spec no longer has a handler
	RuntimeClassNotOwned                           // the existing RuntimeClass has another owner
)

// RuntimeClassName returns the name of the pool's RuntimeClass.
func RuntimeClassName(pool string) string { return tidekeeperv1.RuntimeClassPrefix + pool }

// DesiredRuntimeClass returns the RuntimeClass that schedules pods to the pool's nodes, or nil if
// the pool's spec has no handler.
func DesiredRuntimeClass(pool *tidekeeperv1.NodePool) *nodev1.RuntimeClass {
	if pool.Spec.Handler == "" {
		return nil
	}
	// By convention, the role label has an empty value. The node selector requires this value,
	// because it cannot select a label regardless of the label's value.
	nodeSelector := map[string]string{tidekeeperv1.RoleLabelPrefix + pool.Name: ""}
	if pool.Spec.Selector != nil {
		nodeSelector = plainMap(pool.Spec.Selector.MatchLabels)
	}
	var tolerations []corev1.Toleration
	for _, t := range Taints(pool) {
		tolerations = append(tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	}
	return &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:            RuntimeClassName(pool.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pool, tidekeeperv1.SchemeGroupVersion.WithKind("NodePool"))},
		},
		Handler:    pool.Spec.Handler,
		Scheduling: &nodev1.Scheduling{NodeSelector: nodeSelector, Tolerations: tolerations},
	}
}

// DecideRuntimeClass returns the action that brings the pool's RuntimeClass to its desired state.
// existing is the RuntimeClass that has the pool's RuntimeClass name, or nil. A RuntimeClass that
// the pool does not own must not be changed.
func DecideRuntimeClass(pool *tidekeeperv1.NodePool, existing *nodev1.RuntimeClass) RuntimeClassAction {
	desired := DesiredRuntimeClass(pool)
	switch {
	case existing == nil && desired == nil:
		return RuntimeClassUpToDate
	case existing == nil:
		return RuntimeClassCreate
	case !metav1.IsControlledBy(existing, pool):
		if desired == nil {
			return RuntimeClassUpToDate
		}
		return RuntimeClassNotOwned
	case existing.DeletionTimestamp != nil:
		// The RuntimeClass is being deleted. The event of its deletion will queue the pool again.
		return RuntimeClassUpToDate
	case desired == nil:
		return RuntimeClassDelete
	case existing.Handler != desired.Handler:
		return RuntimeClassReplace
	case !sameScheduling(existing.Scheduling, desired.Scheduling):
		return RuntimeClassUpdate
	default:
		return RuntimeClassUpToDate
	}
}

func sameScheduling(a, b *nodev1.Scheduling) bool {
	return a != nil && b != nil &&
		equality.Semantic.DeepEqual(a.NodeSelector, b.NodeSelector) &&
		slices.EqualFunc(a.Tolerations, b.Tolerations, func(x, y corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(x, y)
		})
}
