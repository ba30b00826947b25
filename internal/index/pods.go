// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// PodNode is the name of the index of pods by the node that they are bound to. It is also the name
// of the corresponding field selector of the API server.
const PodNode = "spec.nodeName"

// PodsByNode returns the index [PodNode]. Pods that are bound to no node are not indexed.
func PodsByNode() Index {
	return Index{Field: PodNode, Object: &corev1.Pod{}, Values: podNode}
}

func podNode(object client.Object) []string {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return []string{pod.Spec.NodeName}
}

// PodController is the name of the index of pods by the UID of the object that controls them, such
// as a ReplicaSet.
const PodController = "metadata.controller"

// PodsByController returns the index [PodController].
func PodsByController() Index {
	return Index{Field: PodController, Object: &corev1.Pod{}, Values: podController}
}

func podController(object client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return nil
	}
	return []string{string(owner.UID)}
}

// PodRestart is the name of the index of a workload's Ready pods by the restart that created them.
// [RestartKey] returns its values. Other pods are not indexed.
const PodRestart = "metadata.restart"

// RestartKey returns the value in the index [PodRestart] for a workload's pods that were created by
// the restart at restartedAt, the time in the workload's pod template.
func RestartKey(kind, name, restartedAt string) string {
	return kind + "/" + name + "@" + restartedAt
}

// PodsByRestart returns the index [PodRestart]. The given function returns the time of the restart
// that created a pod. It returns "" if the pod was not created by a restart or is not Ready.
func PodsByRestart(restartedAt func(*corev1.Pod) string) Index {
	return Index{Field: PodRestart, Object: &corev1.Pod{}, Values: PodRestartOf(restartedAt)}
}

// PodRestartOf returns the function that computes a pod's values in the index [PodRestart], for
// callers that do not read pods from the cache.
func PodRestartOf(restartedAt func(*corev1.Pod) string) client.IndexerFunc {
	return func(object client.Object) []string {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil
		}
		at := restartedAt(pod)
		kind, name := pods.Workload(pod)
		if at == "" || name == "" {
			return nil
		}
		return []string{RestartKey(kind, name, at)}
	}
}
