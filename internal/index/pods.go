// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// PodController finds pods by the UID of the object that controls them, such as a ReplicaSet.
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

// PodRestart finds the Ready pods of a workload that a given restart created; [RestartKey]
// returns its values. Pods that no restart created are not indexed.
const PodRestart = "metadata.restart"

// RestartKey returns the value of the index [PodRestart] for a workload and the time of its
// last restart, from its pod template.
func RestartKey(kind, name, restartedAt string) string {
	return kind + "/" + name + "@" + restartedAt
}

// PodsByRestart returns the index [PodRestart]. restartedAt returns the restart that created a
// pod; "" if there was none or the pod is not Ready.
func PodsByRestart(restartedAt func(*corev1.Pod) string) Index {
	return Index{Field: PodRestart, Object: &corev1.Pod{}, Values: PodRestartOf(restartedAt)}
}

// PodRestartOf returns the function that computes the values of a pod in the index
// [PodRestart], for pods that are not read from the cache.
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
