// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"os"
	"regexp"
	"testing"
)

// TestKubeletVersion checks that the kubelet belongs to the same Kubernetes release as the control
// plane.
func TestKubeletVersion(t *testing.T) {
	version := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)
	var found []string
	for _, file := range []string{"../../go.mod", "../../hack/kubelet/go.mod"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		match := version.FindSubmatch(text)
		if match == nil {
			t.Fatalf("%s has no version of k8s.io/kubernetes", file)
		}
		found = append(found, string(match[1]))
	}
	if found[0] != found[1] {
		t.Errorf("the control plane is of %s, the kubelet of %s: change hack/kubelet/go.mod", found[0], found[1])
	}
}
