// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// settingsOf describes the settings in a pool's spec and the pool's RuntimeClass, one text for
// each.
func settingsOf(p *tidekeeperv1.NodePool) []string {
	desired := map[setting.Key]string{}
	var keys []setting.Key
	for key, value := range setting.Desired(p) {
		desired[key] = value
		keys = append(keys, key)
	}
	order := setting.Kinds()
	slices.SortFunc(keys, func(a, b setting.Key) int {
		return cmp.Or(slices.Index(order, a.Kind)-slices.Index(order, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	texts := []string{}
	for _, key := range keys {
		texts = append(texts, fmt.Sprintf("%s %s", key.Kind, setting.Format(key, desired[key])))
	}
	if p.Spec.Handler != "" {
		texts = append(texts, fmt.Sprintf("RuntimeClass %s%s, handler %s", tidekeeperv1.RuntimeClassPrefix, p.Name, p.Spec.Handler))
	}
	return texts
}

// missingSettings lists the settings in the pool's spec that are missing from the node.
func missingSettings(p *tidekeeperv1.NodePool, node *corev1.Node) []string {
	texts := []string{}
	for _, key := range setting.Missing(p, node) {
		texts = append(texts, key.String())
	}
	return texts
}

// closedSince returns the time at which the pool closed the node to new pods, in order to evict its
// pods within PodDisruptionBudgets. It returns nil if the node is not being emptied.
func closedSince(p *tidekeeperv1.NodePool, node *corev1.Node) (first *metav1.Time) {
	for _, since := range ownership.ParseClosed(node.Annotations[tidekeeperv1.OwnershipAnnotation])[p.Name] {
		if first == nil || since.Before(first.Time) {
			first = &metav1.Time{Time: since}
		}
	}
	return first
}
