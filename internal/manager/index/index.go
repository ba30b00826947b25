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
	"strings"

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

// PodRestart finds the ready pods of a workload that one restart has made;
// [RestartKey] makes its values. A pod that no restart made takes no room in it.
const PodRestart = "metadata.restart"

// RestartKey is the value of the index PodRestart for a workload and what its
// template says about its last restart.
func RestartKey(kind, name, restartedAt string) string {
	return TargetKey(kind, name) + "@" + restartedAt
}

// AddPodRestart returns what adds the index PodRestart. The function says which
// restart has made a pod that is ready, or "".
func AddPodRestart(restartedAt func(*corev1.Pod) string) func(context.Context, client.FieldIndexer) error {
	return func(ctx context.Context, indexer client.FieldIndexer) error {
		if err := indexer.IndexField(ctx, &corev1.Pod{}, PodRestart, PodRestartOf(restartedAt)); err != nil {
			return fmt.Errorf("index %s of pods: %w", PodRestart, err)
		}
		return nil
	}
}

// PodRestartOf returns what says the values of a pod in the index PodRestart, for
// pods that are not in it.
func PodRestartOf(restartedAt func(*corev1.Pod) string) client.IndexerFunc {
	return func(object client.Object) []string {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil
		}
		at, owner := restartedAt(pod), metav1.GetControllerOfNoCopy(pod)
		if at == "" || owner == nil {
			return nil
		}
		kind, name := workloadOf(owner)
		return []string{RestartKey(kind, name, at)}
	}
}

// workloadOf returns the workload that a pod belongs to. Of a Deployment's pod
// that is not its controller but the ReplicaSet's, which is named after it, with
// a hash behind the last dash.
func workloadOf(owner *metav1.OwnerReference) (kind, name string) {
	if owner.Kind != "ReplicaSet" {
		return owner.Kind, owner.Name
	}
	if i := strings.LastIndexByte(owner.Name, '-'); i > 0 {
		return "Deployment", owner.Name[:i]
	}
	return owner.Kind, owner.Name
}
