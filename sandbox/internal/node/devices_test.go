// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestParseDevices(t *testing.T) {
	for list, want := range map[string]string{
		"gpu.example.com=4": "", "gpu.example.com/large=2,gpu.example.com/small=2,nic.example.com=1": "", "gpu.example.com=128": "",
		"gpu.example.com": "want driver=count", "gpu.example.com=0": "want driver=count", "gpu.example.com=x": "want driver=count", "": "want driver=count",
		"GPU=1": "the name of a driver is a domain", "gpu.example.com/=1": "the name of a model has", "gpu.example.com=129": "at most 128 devices",
		"gpu.example.com/a=100,gpu.example.com/b=100": "at most 128 devices",
	} {
		_, err := ParseDevices(list)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", list, err, want)
		}
	}
}

func TestResourceSlices(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}}
	if list, err := ResourceSlices(n); err != nil || len(list) > 0 {
		t.Errorf("a node without the annotation has %d ResourceSlices: %v", len(list), err)
	}
	n.Annotations = map[string]string{DevicesAnnotation: "nic.example.com=1,gpu.example.com/large=1,gpu.example.com=2"}
	list, err := ResourceSlices(n)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d ResourceSlices, want one for each of two drivers: %v", len(list), err)
	}
	gpus := list[0]
	if gpus.Name != "n-gpu.example.com" || *gpus.Spec.NodeName != "n" || gpus.OwnerReferences[0].UID != "1" || len(gpus.Spec.Devices) != 3 {
		t.Errorf("ResourceSlice %+v", gpus)
	}
	for i, model := range []string{"large", "simulated", "simulated"} {
		if got := *gpus.Spec.Devices[i].Attributes["model"].StringValue; got != model {
			t.Errorf("device %d is of the model %s, want %s", i, got, model)
		}
	}
	n.Annotations[DevicesAnnotation] = "many"
	if _, err := ResourceSlices(n); err == nil {
		t.Error("an invalid annotation is accepted")
	}
}
