// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// TestPodOfStatefulSet checks that a StatefulSet's volume claims become volumes of its pod, and
// replace the template's volumes of the same name.
func TestPodOfStatefulSet(t *testing.T) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
kind: StatefulSet
spec:
  template:
    spec:
      containers: [{name: db, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, emptyDir: {}}, {name: tmp, emptyDir: {}}]
  volumeClaimTemplates: [{metadata: {name: data}}]
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	pod, err := podOf(object)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range pod.Spec.Volumes {
		names = append(names, v.Name)
	}
	if diff := cmp.Diff([]string{"tmp", "data"}, names); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"persistent volumes"}, capacity.ShapeOf(pod).Unevaluated); diff != "" {
		t.Errorf("not evaluated (-want +got):\n%s", diff)
	}
}

// TestClaimTemplatesOfStatefulSet checks that a StatefulSet's volume claims become ephemeral volumes
// with the template, named like its claims, and that other volumes stay.
func TestClaimTemplatesOfStatefulSet(t *testing.T) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
kind: StatefulSet
metadata: {name: db}
spec:
  template:
    spec:
      containers: [{name: db}]
      volumes: [{name: data, emptyDir: {}}, {name: shared, persistentVolumeClaim: {claimName: shared}}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast, resources: {requests: {storage: 1Gi}}}}]
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	pod, err := podOf(object)
	if err != nil {
		t.Fatal(err)
	}
	setClaimTemplates(pod, object)
	shared, data := pod.Spec.Volumes[0], pod.Spec.Volumes[1]
	if shared.PersistentVolumeClaim == nil || shared.PersistentVolumeClaim.ClaimName != "shared" {
		t.Errorf("the shared volume is %+v", shared)
	}
	if data.PersistentVolumeClaim != nil || data.Ephemeral == nil {
		t.Fatalf("the volume of the template is %+v", data)
	}
	template := data.Ephemeral.VolumeClaimTemplate
	if storage := template.Spec.Resources.Requests.Storage().String(); template.Name != "data-db-" || *template.Spec.StorageClassName != "fast" || storage != "1Gi" {
		t.Errorf("the template is %+v", template)
	}
}
