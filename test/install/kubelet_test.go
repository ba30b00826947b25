// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// runPod waits for a pod whose label app.kubernetes.io/name has the given value, and acts as the
// pod's kubelet. It runs the pod's only container as a process with a token for the pod's service
// account, reports the exit code in the pod's status, and returns the process's output. If the pod
// is assigned to a node, that node's kubelet must not start pods.
func runPod(t *testing.T, cluster *framework.Cluster, name string) string {
	t.Helper()
	pods := &corev1.PodList{}
	framework.Eventually(t, "the pod "+name+" exists", func() error {
		if err := cluster.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": name}); err != nil {
			return err
		}
		// The previous run's pod may still exist.
		pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
			return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodPending
		})
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		return nil
	})
	pod := &pods.Items[0]
	if len(pod.Spec.Containers) != 1 {
		t.Fatalf("the pod %s has %d containers, want one", pod.Name, len(pod.Spec.Containers))
	}
	container := pod.Spec.Containers[0]
	process := framework.Run(t, append(container.Args, "--kubeconfig", cluster.AccountKubeconfig(t, namespace, pod.Spec.ServiceAccountName))...)
	phase := corev1.PodSucceeded
	code := process.Wait(t)
	if code != 0 {
		phase = corev1.PodFailed
	}
	patch := fmt.Sprintf(`{"status":{"phase":%q,"containerStatuses":[{"name":%q,"image":%q,"imageID":"","state":{"terminated":{"exitCode":%d}}}]}}`,
		phase, container.Name, container.Image, code)
	if err := cluster.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	return process.Log()
}

// helmWithPod runs helm and, in parallel, the pod that helm waits for. It returns the pod's output.
func helmWithPod(t *testing.T, cluster *framework.Cluster, pod string, args ...string) (said string, err error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		out, err := framework.Helm(t, args...)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		done <- err
	}()
	said = runPod(t, cluster, pod)
	return said, <-done
}
