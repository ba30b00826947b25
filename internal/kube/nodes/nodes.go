// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes provides helper functions for nodes and their taints.
package nodes

import (
	"slices"

	"github.com/go-logr/logr" //nolint:depguard // Kubernetes' toleration checks require a logger; a discarding logger is passed.
	corev1 "k8s.io/api/core/v1"
)

// IsReady reports whether a node's condition "Ready" has the status True.
func IsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// FirstTolerating returns the index of the first toleration that matches the taint, or -1 if none
// does. It follows the rules of the scheduler and the taint eviction controller.
func FirstTolerating(tolerations []corev1.Toleration, taint *corev1.Taint) int {
	return slices.IndexFunc(tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), taint, true)
	})
}

// Blocks reports whether a taint prevents the scheduler from placing a pod with the given
// tolerations on a node.
func Blocks(taint *corev1.Taint, tolerations []corev1.Toleration) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule && FirstTolerating(tolerations, taint) < 0
}
