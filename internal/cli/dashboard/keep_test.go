// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// siblingPod returns the nth pod of a ReplicaSet. The pod also has fields that no page shows.
func siblingPod(n int, cpu string) *corev1.Pod {
	controller := true
	requests := corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("web-", n), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: &controller}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "app", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "s3cret"}}, Args: []string{"s3cret"}, ReadinessProbe: &corev1.Probe{PeriodSeconds: 7},
				VolumeMounts: []corev1.VolumeMount{{Name: fmt.Sprint("kube-api-access-", n)}}, Resources: corev1.ResourceRequirements{Requests: requests},
			}},
			Volumes: []corev1.Volume{
				{Name: fmt.Sprint("kube-api-access-", n), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", ImageID: "sha256:1", AllocatedResources: requests.DeepCopy(), Resources: &corev1.ResourceRequirements{Requests: requests.DeepCopy()},
		}}},
	}
}

// TestKeepProgress checks that the time of a rollout's last progress is kept, so that the dashboard
// and the plugin show the same forecast.
func TestKeepProgress(t *testing.T) {
	changed := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &changed, FieldsV1: metav1.NewFieldsV1("{}")}}},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: 1, CurrentRevision: "a", UpdateRevision: "b"},
	}
	if _, err := (&keeper{}).keep(set); err != nil {
		t.Fatal(err)
	}
	if at, _ := workload.LastProgress(set); !at.Equal(changed.Time) || set.ManagedFields[0].FieldsV1 != nil {
		t.Errorf("the last progress is %s, want %s; kept: %v", at, changed, set.ManagedFields)
	}
}

// TestKeep checks that reduced pods have no environment or arguments but the same requests, and
// that pods of the same owner share their equal parts.
func TestKeep(t *testing.T) {
	k := &keeper{}
	var kept []*corev1.Pod
	for n, cpu := range []string{"1", "1", "2"} {
		pod := siblingPod(n, cpu)
		if n == 1 { // The in-place resize has not been granted yet.
			pod.Status.ContainerStatuses[0].Resources.Requests["cpu"] = resource.MustParse("3")
		}
		before := resources.Requests(pod)
		if _, err := k.keep(pod); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, resources.Requests(pod)); diff != "" {
			t.Errorf("what %s requests (-before +kept):\n%s", pod.Name, diff)
		}
		if strings.Contains(pod.String(), "s3cret") || pod.Spec.Containers[0].ReadinessProbe == nil || len(pod.Spec.Volumes) != 1 {
			t.Errorf("what is kept: %s", pod)
		}
		kept = append(kept, pod)
	}
	a, b, c := &kept[0].Spec.Containers[0], &kept[1].Spec.Containers[0], &kept[2].Spec.Containers[0]
	if a != b || b == c || c.Resources.Requests.Cpu().String() != "2" || kept[0].Name == kept[1].Name {
		t.Error("equal containers are not shared, or different ones are")
	}
}
