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
