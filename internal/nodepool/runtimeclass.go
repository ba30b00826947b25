// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// runtimeClassAction is what has to be done about a pool's RuntimeClass.
type runtimeClassAction int

const (
	runtimeClassRight   runtimeClassAction = iota // nothing to do
	runtimeClassCreate                            // there is none
	runtimeClassUpdate                            // its scheduling differs
	runtimeClassReplace                           // its handler differs, which cannot be changed in place
	runtimeClassDelete                            // the pool has no handler any more
	runtimeClassForeign                           // one of that name belongs to somebody else
)

// runtimeClassName returns the name of the pool's RuntimeClass.
func runtimeClassName(pool string) string { return tidekeeperv1.RuntimeClassPrefix + pool }

// desiredRuntimeClass returns the RuntimeClass that sends a pod that names it
// onto the pool's nodes, or nil if the pool has no handler.
func desiredRuntimeClass(pool *tidekeeperv1.NodePool) *nodev1.RuntimeClass {
	if pool.Spec.Handler == "" {
		return nil
	}
	// By convention the role label has no value; a RuntimeClass cannot say
	// "any value".
	nodeSelector := map[string]string{tidekeeperv1.RoleLabelPrefix + pool.Name: ""}
	if pool.Spec.Selector != nil {
		nodeSelector = plainMap(pool.Spec.Selector.MatchLabels)
	}
	var tolerations []corev1.Toleration
	for _, t := range pool.Spec.Taints {
		tolerations = append(tolerations, corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOpEqual, Value: string(t.Value), Effect: t.Effect,
		})
	}
	return &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:            runtimeClassName(pool.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pool, tidekeeperv1.SchemeGroupVersion.WithKind("NodePool"))},
		},
		Handler:    pool.Spec.Handler,
		Scheduling: &nodev1.Scheduling{NodeSelector: nodeSelector, Tolerations: tolerations},
	}
}

// decideRuntimeClass compares the RuntimeClass of the pool's name, nil if
// there is none, with the one that the pool should have. One that the pool
// does not own is never touched.
func decideRuntimeClass(pool *tidekeeperv1.NodePool, existing *nodev1.RuntimeClass) runtimeClassAction {
	desired := desiredRuntimeClass(pool)
	switch {
	case existing == nil && desired == nil:
		return runtimeClassRight
	case existing == nil:
		return runtimeClassCreate
	case !metav1.IsControlledBy(existing, pool):
		if desired == nil {
			return runtimeClassRight
		}
		return runtimeClassForeign
	case existing.DeletionTimestamp != nil:
		// Its deletion queues the pool again.
		return runtimeClassRight
	case desired == nil:
		return runtimeClassDelete
	case existing.Handler != desired.Handler:
		return runtimeClassReplace
	case !sameScheduling(existing.Scheduling, desired.Scheduling):
		return runtimeClassUpdate
	default:
		return runtimeClassRight
	}
}

func sameScheduling(a, b *nodev1.Scheduling) bool {
	return a != nil && b != nil &&
		equality.Semantic.DeepEqual(a.NodeSelector, b.NodeSelector) &&
		slices.EqualFunc(a.Tolerations, b.Tolerations, func(x, y corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(x, y)
		})
}
