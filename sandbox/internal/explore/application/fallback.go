// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FallBack makes the running pods of the named application not ready, as if a probe had failed, and
// returns their number. Their kubelets make them ready again.
func (a *Applications) FallBack(ctx context.Context, name string) (pods int, _ error) {
	i := slices.IndexFunc(a.all, func(app application) bool { return app.Name() == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no application %s", name)
	}
	list, err := a.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: a.all[i].Selector.String()})
	if err != nil {
		return 0, err
	}
	patch, err := notReady(time.Now())
	if err != nil {
		return 0, err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		_, err := a.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			return pods, err
		}
		pods++
	}
	return pods, nil
}

// notReady returns the patch of a pod's status when a probe has failed.
func notReady(now time.Time) ([]byte, error) {
	var status corev1.PodStatus
	for _, name := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: name, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "a probe has failed", LastTransitionTime: metav1.NewTime(now),
		})
	}
	return json.Marshal(map[string]any{"status": map[string]any{"conditions": status.Conditions}})
}
