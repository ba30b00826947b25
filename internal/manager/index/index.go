// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index names the indexes on the shared cache, and builds them.
//
// A controller lists through an index with client.MatchingFields:
//
//	c.List(ctx, &pods, client.MatchingFields{index.PodNodeName: node.Name})
package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodNodeName finds pods by the node that they are bound to. The API server
// knows a field selector of the same name, so that the same list works on a
// client without a cache.
const PodNodeName = "spec.nodeName"

// AddPodNodeName adds the index PodNodeName.
func AddPodNodeName(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, PodNodeName, podNodeName); err != nil {
		return fmt.Errorf("index %s of pods: %w", PodNodeName, err)
	}
	return nil
}

func podNodeName(object client.Object) []string {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return []string{pod.Spec.NodeName}
}

// PodController finds pods by the UID of the object that controls them, such as
// a ReplicaSet.
const PodController = "metadata.controller"

// AddPodController adds the index PodController.
func AddPodController(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, PodController, podController); err != nil {
		return fmt.Errorf("index %s of pods: %w", PodController, err)
	}
	return nil
}

func podController(object client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return nil
	}
	return []string{string(owner.UID)}
}
