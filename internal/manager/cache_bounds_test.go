// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// hugeMetadata fills an object's metadata with lists of n elements and strings of 10*n bytes.
func hugeMetadata(o metav1.Object, n int) {
	all := map[string]string{
		tidekeeperv1.OptInScheduleAnnotation: long(n), tidekeeperv1.RestartNowAnnotation: long(n),
		tidekeeperv1.AppliedAnnotation: long(n), tidekeeperv1.LastTickAnnotation: long(n),
	}
	for i := range n {
		all[fmt.Sprint("example.com/", i)] = ""
	}
	o.SetLabels(all)
	o.SetAnnotations(all)
	o.SetManagedFields(make([]metav1.ManagedFieldsEntry, n))
	o.SetFinalizers(make([]string, n))
	owners := make([]metav1.OwnerReference, n)
	owners[n-1] = metav1.OwnerReference{APIVersion: long(n), Kind: long(n), Name: long(n), UID: types.UID(long(n)), Controller: new(true)}
	o.SetOwnerReferences(owners)
}

func hugeSelector(n int) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}, MatchExpressions: make([]metav1.LabelSelectorRequirement, n)}
	for i := range n {
		s.MatchLabels[fmt.Sprint("l", i)] = ""
	}
	s.MatchExpressions[0] = metav1.LabelSelectorRequirement{Key: long(n), Operator: metav1.LabelSelectorOpNotIn, Values: make([]string, n)}
	return s
}

func hugeTemplate(n int) corev1.PodTemplateSpec {
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: hugeContainers(n, 1)}}
	hugeMetadata(&pod.ObjectMeta, n)
	pod.Annotations[tidekeeperv1.RestartedAtAnnotation] = long(n)
	for i := range n {
		pod.Spec.Containers[0].EnvFrom = append(pod.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint("c", i)}},
		})
	}
	return pod
}

// hugeWorkloads maps each kind to a function that returns a huge object: each field without a size
// limit has n elements or 10*n bytes.
var hugeWorkloads = map[string]func(n int) client.Object{
	"Deployment": func(n int) client.Object {
		return &appsv1.Deployment{
			Spec:   appsv1.DeploymentSpec{Selector: hugeSelector(n), Template: hugeTemplate(n)},
			Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: "ProgressDeadlineExceeded", Message: long(n)}}},
		}
	},
	"StatefulSet": func(n int) client.Object {
		return &appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Selector: hugeSelector(n), Template: hugeTemplate(n), ServiceName: long(n), VolumeClaimTemplates: make([]corev1.PersistentVolumeClaim, n)},
			Status: appsv1.StatefulSetStatus{Conditions: []appsv1.StatefulSetCondition{{Message: long(n)}}},
		}
	},
	"DaemonSet": func(n int) client.Object {
		return &appsv1.DaemonSet{
			Spec:   appsv1.DaemonSetSpec{Selector: hugeSelector(n), Template: hugeTemplate(n)},
			Status: appsv1.DaemonSetStatus{Conditions: []appsv1.DaemonSetCondition{{Message: long(n)}}},
		}
	},
	"ReplicaSet": func(n int) client.Object {
		return &appsv1.ReplicaSet{
			Spec:   appsv1.ReplicaSetSpec{Selector: hugeSelector(n), Template: hugeTemplate(n)},
			Status: appsv1.ReplicaSetStatus{Conditions: []appsv1.ReplicaSetCondition{{Message: long(n)}}},
		}
	},
	"Rollout": func(n int) client.Object {
		labels := map[string]any{}
		for i := range n {
			labels[fmt.Sprint("l", i)] = ""
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
			"spec":   map[string]any{"selector": map[string]any{"matchLabels": labels}, "restartAt": long(n), "replicas": make([]any, n), "strategy": labels},
			"status": map[string]any{"message": long(n), "phase": long(n), "observedGeneration": long(n), "restartedAt": labels},
		}}
		u.SetName("web")
		return u
	},
	"ScheduledRestart": func(int) client.Object { return &tidekeeperv1.ScheduledRestart{} },
	"ConfigMap": func(n int) client.Object {
		c := &corev1.ConfigMap{Data: map[string]string{}, BinaryData: map[string][]byte{"b": []byte(long(n))}}
		for i := range n {
			c.Data[fmt.Sprint(i)] = ""
		}
		return c
	},
	"PodDisruptionBudget": func(n int) client.Object {
		return &policyv1.PodDisruptionBudget{
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: hugeSelector(n)},
			Status: policyv1.PodDisruptionBudgetStatus{
				DisruptedPods: map[string]metav1.Time{long(n): {}}, Conditions: []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: long(n), Message: long(n)}},
			},
		}
	},
	"Secret": func(n int) client.Object {
		s := &corev1.Secret{Data: map[string][]byte{"b": []byte(long(n))}}
		for i := range n {
			s.Data[fmt.Sprint(i)] = nil
		}
		return s
	},
}

// TestTransformIsBounded checks that the cached part of a workload or ScheduledRestart is bounded,
// regardless of the object's size. The spec and status of a ScheduledRestart are bounded by its
// CRD.
func TestTransformIsBounded(t *testing.T) {
	const most = 32 << 10
	for name, huge := range hugeWorkloads {
		for _, n := range []int{10, 1000, 10_000} {
			object := huge(n)
			hugeMetadata(object, n)
			kept, err := transformOf(object)(object)
			if err != nil {
				t.Fatal(err)
			}
			if size := sizeInMemory(reflect.ValueOf(kept)); size > most {
				t.Errorf("of a %s with %d of everything, the cache keeps %d bytes, want at most %d", name, n, size, most)
			} else {
				t.Logf("of a %s with %d of everything, the cache keeps %d bytes", name, n, size)
			}
		}
	}
}

// TestDefaultTransformIsBounded checks that transformByDefault bounds the metadata of namespaced
// objects, which tenants write. It must keep the metadata of cluster-scoped objects, which
// administrators write.
func TestDefaultTransformIsBounded(t *testing.T) {
	for namespace, want := range map[string]int{"": 1000 + 4, "shop": 4} {
		budget := &policyv1.PodDisruptionBudget{}
		hugeMetadata(budget, 1000)
		budget.Namespace = namespace
		kept, err := transformByDefault(budget)
		if err != nil {
			t.Fatal(err)
		}
		o := kept.(client.Object)
		if got := len(o.GetAnnotations()); got != want || len(o.GetManagedFields()) > 0 || (len(o.GetFinalizers()) > 0) != (namespace == "") {
			t.Errorf("in the namespace %q, %d annotations, %d finalizers and %d managed fields are kept, want %d annotations",
				namespace, got, len(o.GetFinalizers()), len(o.GetManagedFields()), want)
		}
	}
}

// sizeInMemory returns the number of bytes reachable from a value.
func sizeInMemory(v reflect.Value) (bytes int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			bytes = int(v.Elem().Type().Size()) + sizeInMemory(v.Elem())
		}
	case reflect.String:
		bytes = v.Len()
	case reflect.Slice:
		bytes = v.Cap() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			bytes += sizeInMemory(v.Index(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			bytes += int(v.Type().Key().Size()+v.Type().Elem().Size()) + sizeInMemory(key) + sizeInMemory(value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			bytes += sizeInMemory(v.Field(i))
		}
	}
	return bytes
}
