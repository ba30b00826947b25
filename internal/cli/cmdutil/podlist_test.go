// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"encoding/json"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/randfill"
)

// without returns a copy of a pod without the fields that no command reads.
func without(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, Finalizers: pod.Finalizers,
	}
	containers := func(all []corev1.Container) {
		for i, c := range all {
			all[i] = corev1.Container{Name: c.Name, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		}
	}
	containers(pod.Spec.Containers)
	containers(pod.Spec.InitContainers)
	pod.Spec.EphemeralContainers = nil
	statuses := func(all []corev1.ContainerStatus) []corev1.ContainerStatus {
		for i, s := range all {
			all[i] = corev1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources}
		}
		return all
	}
	pod.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, StartTime: pod.Status.StartTime, NominatedNodeName: pod.Status.NominatedNodeName,
		AllocatedResources: pod.Status.AllocatedResources, Resources: pod.Status.Resources,
		NodeAllocatableResourceClaimStatuses: pod.Status.NodeAllocatableResourceClaimStatuses, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses,
		ContainerStatuses: statuses(pod.Status.ContainerStatuses), InitContainerStatuses: statuses(pod.Status.InitContainerStatuses),
	}
	return pod
}

// TestAllPods checks with random pods that AllPods decodes every field that the commands read. If
// the API server sends JSON instead of protobuf, all fields must be decoded.
func TestAllPods(t *testing.T) {
	fill := randfill.New().RandSource(rand.NewSource(1)).NilChance(.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(1_700_000_000+c.Int63n(1000), 0) },
		func(*metav1.FieldsV1, randfill.Continue) {},
	)
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for range 300 {
		pod := corev1.Pod{}
		fill.Fill(&pod)
		pod.TypeMeta = metav1.TypeMeta{}
		delete(pod.Annotations, corev1.MirrorPodAnnotationKey)
		list.Items = append(list.Items, pod)
	}
	for name, sendsProtobuf := range map[string]bool{"protobuf": true, "JSON": false} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/pods" || r.URL.Query().Get("resourceVersion") != "0" || r.URL.Query().Get("fieldSelector") == "" {
					t.Errorf("asked for %s", r.URL)
				}
				var err error
				if sendsProtobuf {
					err = protobuf.NewSerializer(Scheme, Scheme).Encode(list, w)
				} else {
					w.Header().Set("Content-Type", "application/json")
					err = json.NewEncoder(w).Encode(list)
				}
				if err != nil && sendsProtobuf { // The client aborts a JSON response after the first bytes.
					t.Error(err)
				}
			}))
			defer server.Close()
			c, err := ClientFor(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			pods, err := AllPods(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if len(pods) != len(list.Items) {
				t.Fatalf("%d pods, want %d", len(pods), len(list.Items))
			}
			for i := range pods {
				want, got := without(&list.Items[i]), &pods[i]
				if !sendsProtobuf {
					got = without(got)
				} else if len(got.Annotations) > 0 || len(got.ManagedFields) > 0 || got.Status.PodIP != "" {
					t.Fatalf("more is decoded than is read: %v", got)
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("pod %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestAllPodsForbidden checks that AllPods returns the API server's error.
func TestAllPodsForbidden(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden: no","reason":"Forbidden","code":403}`))
	}))
	defer server.Close()
	c, err := ClientFor(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := AllPods(t.Context(), c); err == nil || err.Error() != "pods is forbidden: no" {
		t.Errorf("the error is %v", err)
	}
}
