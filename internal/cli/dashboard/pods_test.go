// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/randfill"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// TestPodSource checks with random pods that partial decoding yields the same reduced pods as
// decoding complete pods from JSON.
func TestPodSource(t *testing.T) {
	fill := randfill.New().RandSource(rand.NewSource(1)).NilChance(.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(1_700_000_000+c.Int63n(1000), 0) },
		func(*metav1.FieldsV1, randfill.Continue) {},
	)
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"}}
	for range 100 {
		pod := corev1.Pod{}
		fill.Fill(&pod)
		pod.TypeMeta = metav1.TypeMeta{}
		list.Items = append(list.Items, pod)
	}
	plain := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	for _, source := range []corev1.VolumeSource{
		{Projected: &corev1.ProjectedVolumeSource{}}, {ConfigMap: &corev1.ConfigMapVolumeSource{}}, {Secret: &corev1.SecretVolumeSource{}},
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}, {EmptyDir: &corev1.EmptyDirVolumeSource{}}, {HostPath: &corev1.HostPathVolumeSource{}}, {NFS: &corev1.NFSVolumeSource{}},
	} {
		plain.Spec.Volumes = append(plain.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	}
	list.Items = append(list.Items, plain)
	for name, sendsProtobuf := range map[string]bool{"protobuf": true, "JSON": false} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/shop/pods" || r.URL.Query().Get("resourceVersion") != "0" || r.URL.Query().Get("limit") != "500" {
					t.Errorf("asked for %s", r.URL)
				}
				if sendsProtobuf {
					if err := protobuf.NewSerializer(cmdutil.Scheme, cmdutil.Scheme).Encode(list, w); err != nil {
						t.Error(err)
					}
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(list) // The client aborts a JSON response after the first bytes, and repeats the request.
			}))
			defer server.Close()
			c, err := cmdutil.ClientFor(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			source := &podSource{client: c, namespace: "shop", keeper: &keeper{}}
			got, err := source.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
			if err != nil {
				t.Fatal(err)
			}
			if about, err := meta.ListAccessor(got); err != nil || about.GetResourceVersion() != "7" || about.GetContinue() != "next" {
				t.Errorf("the list is %v, %v", about, err)
			}
			pods, err := meta.ExtractListWithAlloc(got)
			if err != nil || len(pods) != len(list.Items) {
				t.Fatalf("%d pods, %v, want %d", len(pods), err, len(list.Items))
			}
			for i, pod := range pods {
				want := list.Items[i].DeepCopy()
				(&keeper{}).keepPod(want)
				if diff := cmp.Diff(want, pod, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("pod %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}
